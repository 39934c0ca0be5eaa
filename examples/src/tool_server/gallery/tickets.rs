//! `/tickets/create`: tickets of a service desk. Only requests with the desk's key open them.

use crate::tool_server::Memory;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// The key of the desk's clients.
const KEY: &str = "desk-key-of-the-gallery";

/// The tickets opened so far: the key of the request and what was asked.
#[derive(Debug, Default)]
pub(crate) struct Desk(Mutex<Vec<(Option<String>, Value)>>);

impl Desk {
    /// The number of the ticket for this request; the one it got before, when it is sent again.
    fn open(&self, key: Option<String>, requested: &Value) -> usize {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = tickets.iter().position(|(other, _)| key.is_some() && *other == key);
        before.unwrap_or_else(|| {
            tickets.push((key, requested.clone()));
            tickets.len() - 1
        }) + 1
    }
}

/// `POST /tickets/create` with `{"summary": "…"}`.
pub(super) async fn create(
    State(memory): State<Arc<Memory>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let key = memory.calls.note("/tickets/create", &headers, &body);
    if headers.get("x-api-key").is_none_or(|given| given != KEY) {
        return (StatusCode::UNAUTHORIZED, Json(json!({"error": "the desk does not know this key"})));
    }
    let number = memory.desk.open(key, &body);
    (StatusCode::CREATED, Json(json!({"ticket_id": format!("SD-{number:04}"), "summary": body["summary"]})))
}
