//! The OpenAPI document: its frame, and the shapes that many endpoints share.
//!
//! Every endpoint describes itself in its own file (`#[utoipa::path]`). The router collects the descriptions, so the
//! served and the described endpoints are the same list.

use crate::reply::{self, JSON};
use crate::stamp::speaks_ojs;
use axum::response::Response;
use std::mem;
pub(crate) use turnstone_ojs::ErrorReply;
use turnstone_ojs::{ErrorBody, JobBody, JobReply, MEDIA_TYPE};
use utoipa::OpenApi as _;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{self, Content, OpenApi, Ref, RefOr, ResponseBuilder};

/// A media type, and the schema of its bodies.
type Body = (String, RefOr<Content>);

/// The schemes of operations, which name the scope; the list of an operation has the role that is needed.
const SCHEMES: [(&str, &str); 2] = [
    (
        "tenant",
        "A key or a token with the role. It concerns the data of its tenant; one of the fleet may name a tenant in X-OJS-Tenant.",
    ),
    ("fleet", "A key or a token of the fleet with the role, without X-OJS-Tenant."),
];

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Turnstone",
        description = "A durable worker fleet for AI agents, and an Open Job Spec server."
    ),
    paths(openapi),
    components(schemas(ErrorReply, ErrorBody, JobBody, JobReply))
)]
struct Frame;

/// Returns the frame, to which the router adds the endpoints.
pub(crate) fn frame() -> OpenApi {
    Frame::openapi()
}

/// Adds the one shape of errors to every operation: every status that is not described is such an error. Under the paths
/// of OJS, JSON gets the media type of OJS, in which [`crate::stamp`] answers there.
pub(crate) fn finish(mut document: OpenApi) -> OpenApi {
    let content = Content::new(Some(RefOr::Ref(Ref::from_schema_name("ErrorReply"))));
    let refused = ResponseBuilder::new()
        .description("Any other status is an error in one shape.")
        .content(MEDIA_TYPE, content.clone())
        .content(JSON, content)
        .build();
    let components = document.components.get_or_insert_default();
    for (scheme, what) in SCHEMES {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(what)).build();
        components.add_security_scheme(scheme, SecurityScheme::Http(bearer));
    }
    for (path, item) in &mut document.paths.paths {
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch, &mut item.head];
        for operation in operations.into_iter().flatten() {
            let responses = &mut operation.responses.responses;
            responses.values_mut().for_each(leave_streams_open);
            if speaks_ojs(path) {
                if let Some(RefOr::T(request)) = &mut operation.request_body {
                    in_ojs(&mut request.content);
                }
                for response in responses.values_mut() {
                    if let RefOr::T(response) = response {
                        in_ojs(&mut response.content);
                    }
                }
            }
            responses.entry("default".to_owned()).or_insert_with(|| RefOr::T(refused.clone()));
        }
    }
    document
}

/// Replaces the media type of JSON by that of OJS.
fn in_ojs<M: Default + IntoIterator<Item = Body> + FromIterator<Body>>(bodies: &mut M) {
    let in_ojs = |(kind, body): Body| (if kind == JSON { MEDIA_TYPE.to_owned() } else { kind }, body);
    *bodies = mem::take(bodies).into_iter().map(in_ojs).collect();
}

/// A stream of events is a text of no fixed form; validators would take a schema for that of each event's parts.
fn leave_streams_open(response: &mut RefOr<openapi::Response>) {
    if let RefOr::T(response) = response
        && let Some(RefOr::T(content)) = response.content.get_mut("text/event-stream")
    {
        content.schema = None;
    }
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "server",
    security(("tenant" = [])),
    responses((status = 200, description = "OpenAPI 3.1: everything that is served.", body = Map<String, Value>)),
)]
#[expect(dead_code, reason = "a placeholder for the route that answers with the finished document")]
fn openapi() {}

/// `GET /openapi.json`: the document.
pub(crate) fn answer(document: &OpenApi) -> Response {
    reply::ok(&serde_json::to_value(document).unwrap_or_default())
}
