//! `GET /site?path=/…`: a small web site, page by page, with its links.

use crate::tool_server::Memory;
use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Deserialize)]
pub(super) struct SiteQuery {
    path: String,
}

struct SitePage {
    path: &'static str,
    title: &'static str,
    text: &'static str,
    links: &'static [&'static str],
}

const SITE: [SitePage; 3] = [
    SitePage {
        path: "/",
        title: "Shoreline Instruments",
        text: "Tide gauges, barometers and the people who look after them.",
        links: &["/gauges", "/opening-hours"],
    },
    SitePage {
        path: "/gauges",
        title: "Tide gauges",
        text: "The T2 measures to a millimetre and sends every minute.",
        links: &["/"],
    },
    SitePage {
        path: "/opening-hours",
        title: "Opening hours of the workshop",
        text: "Monday to Thursday, 8 to 16 o'clock. Bring the gauge dry.",
        links: &["/"],
    },
];

/// One page, or 404.
pub(super) async fn page(
    State(memory): State<Arc<Memory>>,
    headers: HeaderMap,
    Query(requested): Query<SiteQuery>,
) -> (StatusCode, Json<Value>) {
    memory.calls.note("/site", &headers, &json!({"path": requested.path}));
    match SITE.iter().find(|page| page.path == requested.path) {
        Some(page) => {
            let body = json!({"title": page.title, "text": page.text, "links": page.links});
            (StatusCode::OK, Json(body))
        }
        None => {
            (StatusCode::NOT_FOUND, Json(json!({"error": format!("there is no page {:?}", requested.path)})))
        }
    }
}
