//! `GET /artifacts/{id}`: the content of an artifact. A browser always saves it and never shows it: an agent wrote it,
//! and its content must not run with the rights of this server's pages.

use super::saved_name;
use crate::api::Shared;
use crate::engagements::visible::Visible;
use crate::reply::{Answer, Failure};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use turnstone_domain::ArtifactId;
use turnstone_domain::artifact::{self, Artifact};
use turnstone_ojs::OjsError;

/// The content of an artifact, with its media type, to be saved. Its `ETag` is the SHA-256 of the content.
#[utoipa::path(
    get, path = "/artifacts/{id}", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The artifact."),
        ("If-None-Match" = Option<String>, Header, description = "An `ETag` that the client has."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the artifacts."),
    ),
    responses(
        (status = 200, description = "The content.", body = String, content_type = "application/octet-stream"),
        (status = 304, description = "The client has it."),
    ),
)]
pub(crate) async fn download(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    headers: HeaderMap,
) -> Answer {
    let missing = || Failure::from(OjsError::not_found("artifact", &id));
    let artifacts = &app.api.store.artifacts;
    let artifact =
        artifacts.artifact(&ArtifactId::from(id.as_str()), tenant.name()).await?.ok_or_else(missing)?;
    let views = &app.api.store.views;
    let found = views.engagement_of(&artifact.engagement_id, tenant.name()).await?.ok_or_else(missing)?;
    let (engagement, agent, _) = found;
    let is_shown = Visible::of(&app, &engagement, &agent).await?.has(artifact.turn)
        || super::passed_its_caller(&app, &engagement, &agent).await?;
    if artifact.withheld || !is_shown {
        return Err(missing());
    }
    if headers.get_all(IF_NONE_MATCH).iter().any(|sent| names(sent, &artifact.digest)) {
        return Ok(with_headers(StatusCode::NOT_MODIFIED.into_response(), &artifact));
    }
    let content = artifacts.artifact_content(&artifact.id).await?.ok_or_else(missing)?;
    Ok(with_headers(content.into_response(), &artifact))
}

/// Returns true if `If-None-Match` names this content (RFC 9110 §13.1.2).
fn names(sent: &HeaderValue, digest: &str) -> bool {
    let tags = sent.to_str().unwrap_or_default().split(',').map(str::trim);
    tags.map(|tag| tag.strip_prefix("W/").unwrap_or(tag))
        .any(|tag| tag == "*" || tag.trim_matches('"') == digest)
}

fn with_headers(mut response: Response, artifact: &Artifact) -> Response {
    let text = |text: String| HeaderValue::from_str(&text).ok();
    let media_type = text(artifact.media_type.clone()).unwrap_or(HeaderValue::from_static(artifact::BYTES));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(
        CONTENT_DISPOSITION,
        text(disposition(&artifact.name)).unwrap_or(HeaderValue::from_static("attachment")),
    );
    headers.extend(text(format!("\"{}\"", artifact.digest)).map(|tag| (ETAG, tag)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}

/// Returns the `Content-Disposition` with a safe form of the name, and in ASCII for clients that read no more (RFC 6266).
fn disposition(name: &str) -> String {
    let name = saved_name(name);
    let plain: String =
        name.chars()
            .map(|one| {
                if one.is_ascii_graphic() && !matches!(one, '"' | '\\' | '%') || one == ' ' {
                    one
                } else {
                    '_'
                }
            })
            .collect();
    let whole: String = name
        .bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_quotes() {
        assert_eq!(disposition("a b.txt"), "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt");
        assert_eq!(
            disposition("ü\"; x=\""),
            "attachment; filename=\"__; x=_\"; filename*=UTF-8''%C3%BC_%3B%20x%3D_"
        );
        assert_eq!(disposition(".bashrc"), "attachment; filename=\"bashrc\"; filename*=UTF-8''bashrc");
    }

    #[test]
    fn a_tag_is_found_among_others() {
        let names = |sent| names(&HeaderValue::from_static(sent), "abc");
        assert!(names("\"abc\"") && names("\"x\", W/\"abc\"") && names("*"));
        assert!(!names("\"ab\"") && !names(""));
    }
}
