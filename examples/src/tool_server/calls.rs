//! The log of calls: what an agent really did, seen from the other side.

use crate::tool_server::Memory;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Older calls are forgotten.
const KEPT: usize = 1000;

/// The calls seen so far.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<(u64, VecDeque<Call>)>);

#[derive(Clone, Debug, Serialize)]
struct Call {
    number: u64,
    path: &'static str,
    idempotency_key: Option<String>,
    body: Value,
}

impl Calls {
    /// Notes a call and returns its idempotency key.
    pub(crate) fn note(&self, path: &'static str, headers: &HeaderMap, body: &Value) -> Option<String> {
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).map(ToOwned::to_owned);
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.0 += 1;
        let call = Call { number: calls.0, path, idempotency_key: key.clone(), body: body.clone() };
        calls.1.push_back(call);
        if calls.1.len() > KEPT {
            calls.1.pop_front();
        }
        key
    }
}

/// `GET /log`.
pub(crate) async fn log(State(memory): State<Arc<Memory>>) -> Json<Value> {
    let calls = memory.calls.0.lock().unwrap_or_else(PoisonError::into_inner);
    Json(json!({"total": calls.0, "calls": calls.1, "bookings": memory.bookings.list()}))
}
