//! `/services/status`: what runs in the house, and what does not.

use crate::tool_server::Memory;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// Services and whether they run.
const SERVICES: [(&str, &str); 3] = [("mail", "UP"), ("printing", "DOWN"), ("wiki", "UP")];

/// `POST /services/status` with `{"service": "mail"}`.
pub(super) async fn status(
    State(memory): State<Arc<Memory>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    memory.calls.note("/services/status", &headers, &body);
    match SERVICES.iter().find(|(name, _)| body["service"] == *name) {
        Some((name, state)) => (StatusCode::OK, Json(json!({"service": name, "state": state}))),
        None => {
            let known: Vec<&str> = SERVICES.iter().map(|(name, _)| *name).collect();
            (StatusCode::NOT_FOUND, Json(json!({"error": "no such service", "services": known})))
        }
    }
}
