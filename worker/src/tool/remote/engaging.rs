//! The client of OpenAgentSpec's server (OAS-11, OAS-14). An engagement begins by POST to the agent's own
//! address. It is polled at the address in the answer, on the same host.
//!
//! The call's id is the `Idempotency-Key`: a request sent twice begins one engagement. Cancelling it and
//! answering its questions use the Agent Protocol, with the call's id as the request's.

use super::agent::{Begun, Polling, RemoteCancellation, RemoteRequest, question};
use super::wire::{REQUEST, Wire, short};
use crate::tool::identity::PeerRequest;
use crate::tool::{RemoteQuestion, ToolError};
use reqwest::header::LOCATION;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use turnstone_domain::CallId;
use url::Url;

/// A remote agent that is called by POST.
#[derive(Debug)]
pub(super) struct Engaging {
    wire: Wire,
}

impl Engaging {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire }
    }

    /// Begins the engagement, or finds the one that this call began before.
    pub(super) async fn begin(&self, requested: &RemoteRequest<'_>) -> Result<Begun, ToolError> {
        let mut request = self.wire.post(self.wire.url().clone())?.timeout(REQUEST);
        if let Some(peer_request) = requested.peer_request {
            request = request.headers(peer_request.headers());
        }
        let request =
            request.header("idempotency-key", requested.call).json(&json!({"input": requested.text}));
        // The key makes a retry safe, in every case.
        let response = self.wire.send_once(request, |status| status == 303).await?;
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let state = self.state(location)?;
        Ok(Begun::Under(json!({"state": state.as_str(), "request_id": requested.call})))
    }

    /// Returns the address of the engagement's state.
    fn state(&self, location: Option<&str>) -> Result<Url, ToolError> {
        let own = self.wire.url();
        let state = location.and_then(|location| own.join(location).ok());
        let state = state.filter(|state| state.origin() == own.origin());
        state.ok_or_else(|| self.wire.unusable("it answered 303 without an address on its own host"))
    }

    /// Polls the engagement until it has ended, or asks a question that our user has not answered yet.
    pub(super) async fn follow(
        &self,
        handle: &Value,
        peer_request: &PeerRequest,
    ) -> Result<Value, ToolError> {
        let state = self.state(handle["state"].as_str())?;
        let (mut polling, mut given) = (Polling::default(), BTreeSet::new());
        loop {
            match self.look(&state).await {
                Ok(reported) => {
                    polling.heard();
                    let used = reported["tokens"]["used"].as_i64().unwrap_or(0);
                    peer_request.tokens_used.store(used, Ordering::Relaxed);
                    if let Some(question) = self.asks(&reported)?
                        && !given.contains(&question.id)
                    {
                        match self.answer(handle, question.clone(), peer_request).await {
                            Ok(()) => {
                                given.insert(question.id);
                                polling = Polling::default();
                            }
                            Err(error) => polling.lost(error)?,
                        }
                    } else if let Some(end) = self.end(reported) {
                        return end;
                    }
                }
                Err(error) => polling.lost(error)?,
            }
            polling.pause().await;
        }
    }

    /// Returns the current state of the engagement.
    async fn look(&self, state: &Url) -> Result<Value, ToolError> {
        let response = self.wire.send(self.wire.get(state.clone())?.timeout(REQUEST)).await?;
        self.wire.json(response).await
    }

    /// Returns the outcome of an engagement that has ended.
    fn end(&self, mut reported: Value) -> Option<Result<Value, ToolError>> {
        let status = reported["status"].as_str().unwrap_or_default().to_owned();
        match status.as_str() {
            "completed" => Some(Ok(reported["results"].take())),
            "failed" | "cancelled" => {
                let why = short(reported["error"]["message"].as_str().unwrap_or("no reason was given"));
                Some(Err(self.wire.unusable(&format!("it ended {status}: {why}"))))
            }
            _ => None,
        }
    }

    /// Returns the engagement's question to its user, when it waits for the answer.
    fn asks(&self, reported: &Value) -> Result<Option<RemoteQuestion>, ToolError> {
        let awaited = &reported["awaiting"];
        let Some(id) = awaited["call_id"].as_str().filter(|_| awaited["kind"] == "input") else {
            return Ok(None);
        };
        let question = question(awaited["request_keys"].as_object());
        let question = question.map_err(|why| self.wire.unusable(&why))?;
        Ok(Some(RemoteQuestion { id: id.to_owned(), question }))
    }

    /// Sends our user's answer to the engagement, or returns the question to ask. The answer names its
    /// question, so that a repeated answer never reaches the next one.
    async fn answer(
        &self,
        handle: &Value,
        question: RemoteQuestion,
        peer_request: &PeerRequest,
    ) -> Result<(), ToolError> {
        let Some(values) = peer_request.answer(&question.id) else {
            return Err(ToolError::Asks(Box::new(question)));
        };
        let body = json!({"type": "ResumeWithInput", "request_id": handle["request_id"],
                          "request_keys": values, "call_id": question.id});
        self.wire.resume(&body).await
    }

    /// Cancels the engagement that a call began.
    pub(super) async fn cancel(&self, call: &CallId) -> Result<RemoteCancellation, ToolError> {
        let body = json!({"type": "CancelRequest", "request_id": call});
        self.wire.end(self.wire.process(&body)?).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::outbound;
    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::response::{IntoResponse, Response};
    use axum::routing::{get, post};
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, AtomicUsize};

    fn peer_request() -> PeerRequest {
        let (depth, token_budget, tokens_used) = (1, 100, AtomicI64::new(0));
        PeerRequest { depth, token_budget, user: None, tokens_used, handle: None, answers: Vec::new() }
    }

    /// Returns an answer that breaks off after its head and its first characters.
    fn broken() -> Response {
        let pieces = [Ok("{\"status\":"), Err(std::io::Error::other("cut"))];
        Body::from_stream(futures::stream::iter(pieces)).into_response()
    }

    /// OAS-11: a lost answer about the state, or a gateway's answer instead, is requested again. The work
    /// continues meanwhile, and its outcome counts.
    #[tokio::test]
    async fn a_lost_answer_about_the_state_is_requested_again() {
        let requested = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requested);
        let state = move || async move {
            match count.fetch_add(1, Ordering::SeqCst) {
                0 => broken(),
                1 => StatusCode::BAD_GATEWAY.into_response(),
                2 => StatusCode::TOO_MANY_REQUESTS.into_response(),
                _ => json!({"status": "completed", "results": {"text": "done"}, "tokens": {"used": 7}})
                    .to_string()
                    .into_response(),
            }
        };
        let begun = || async { (StatusCode::SEE_OTHER, [("location", "/engagements/e-1")]) };
        let app = Router::new().route("/agents/clerk", post(begun)).route("/engagements/e-1", get(state));
        let (address, _serving) = crate::served::serve(app).await;
        let url = Url::parse(&format!("http://{address}/agents/clerk")).unwrap();
        let client = outbound::open_client().unwrap();
        let agent = Engaging::new(Wire::new(url, BTreeMap::new(), client));
        let peer_request = peer_request();
        let asking = RemoteRequest { call: "c-1", text: "go".to_owned(), peer_request: Some(&peer_request) };
        let Ok(Begun::Under(handle)) = agent.begin(&asking).await else { panic!("it has begun") };
        assert_eq!(agent.follow(&handle, &peer_request).await, Ok(json!({"text": "done"})));
        assert_eq!(
            (requested.load(Ordering::SeqCst), peer_request.tokens_used.load(Ordering::SeqCst)),
            (4, 7)
        );
        let elsewhere = json!({"state": "http://169.254.169.254/", "request_id": "c-1"});
        assert!(matches!(agent.follow(&elsewhere, &peer_request).await, Err(ToolError::Final(_))));
    }
}
