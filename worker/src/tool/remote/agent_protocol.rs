//! The client of the Agent Protocol (draft of 2025): describe, process, getevents.
//!
//! The id of a request is the id of the call, so a request sent twice is one. Each wait reads its events from
//! the first one, which include earlier questions and answers.

use super::agent::{self, Begun, Polling, RemoteCancellation, RemoteRequest};
use super::wire::{REQUEST, Wire, short};
use crate::tool::identity::PeerRequest;
use crate::tool::lines::lines;
use crate::tool::outbound::{BodyError, media_type};
use crate::tool::{RemoteQuestion, ToolError};
use eventsource_stream::{EventStream, EventStreamError};
use futures::StreamExt;
use reqwest::Response;
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use turnstone_domain::CallId;

/// The largest event, in bytes.
const EVENT: usize = 4 * 1024 * 1024;
/// The most bytes that are read of one stream; then the next one continues.
const STREAM: usize = 64 * 1024 * 1024;
/// The most events of a request.
const MOST_EVENTS: u32 = 1_000_000;
/// The most artifacts of a request in its outcome.
const MOST_ARTIFACTS: usize = 100;
/// The longest silence of a stream before it is opened again.
const SILENCE: Duration = Duration::from_secs(60);

/// A remote agent that is called by the Agent Protocol.
#[derive(Debug)]
pub(super) struct AgentProtocol {
    wire: Wire,
}

impl AgentProtocol {
    /// Returns an agent whose description has been read before.
    pub(super) fn known(wire: Wire) -> Self {
        Self { wire }
    }

    /// Reads an agent's description; returns the agent with its purpose.
    pub(super) async fn read(wire: Wire) -> Result<(Self, String), ToolError> {
        let response = wire.send(wire.get(wire.below(&["describe"]))?.timeout(REQUEST)).await?;
        let reported = wire.json(response).await?;
        if !reported["name"].is_string() {
            return Err(wire.unusable("what it describes is no agent: it has no name"));
        }
        let purpose = reported["purpose"].as_str().unwrap_or_default().to_owned();
        Ok((Self { wire }, purpose))
    }

    /// Sends a chat request.
    pub(super) async fn begin(&self, requested: &RemoteRequest<'_>) -> Result<Begun, ToolError> {
        let body = json!({"type": "ChatRequest", "request_id": requested.call, "input": requested.text});
        let mut request = self.wire.process(&body)?;
        if let Some(peer_request) = requested.peer_request {
            request = request.headers(peer_request.headers());
        }
        let response = self.wire.send_once(request, |status| (200..300).contains(&status)).await?;
        // A server that chooses ids itself returns the id in the event that it may answer with.
        let reported = if media_type(&response) == "application/json" {
            match self.wire.json(response).await {
                Err(ToolError::Failed(text)) => return Err(ToolError::Lost(text)),
                reported => reported?,
            }
        } else {
            Value::Null
        };
        let id = reported["request_id"].as_str().filter(|id| !id.is_empty()).unwrap_or(requested.call);
        Ok(Begun::Under(json!({"request_id": id, "run_id": reported["run_id"]})))
    }

    /// Reads a request's events until it has ended or asks a question that our user has not answered yet.
    pub(super) async fn follow(
        &self,
        handle: &Value,
        peer_request: &PeerRequest,
    ) -> Result<Value, ToolError> {
        let id = self.request(handle)?;
        let mut heard = Heard::default();
        let mut polling = Polling::default();
        loop {
            let before = heard.last;
            let read = self.read_on(id, &mut heard, peer_request).await;
            if heard.last > before {
                polling = Polling::default();
            }
            match read {
                Ok(Some(output)) => return Ok(output),
                Ok(None) => polling.heard(),
                Err(error) => polling.lost(error)?,
            }
            polling.pause().await;
        }
    }

    /// Cancels a request; without a handle, the one that the call would have begun.
    pub(super) async fn cancel(
        &self,
        call: &CallId,
        handle: Option<&Value>,
    ) -> Result<RemoteCancellation, ToolError> {
        let id = handle.map_or(Ok(call.as_str()), |handle| self.request(handle))?;
        let body = json!({"type": "CancelRequest", "request_id": id});
        self.wire.end(self.wire.process(&body)?).await
    }

    fn request<'h>(&self, handle: &'h Value) -> Result<&'h str, ToolError> {
        handle["request_id"].as_str().ok_or_else(|| self.wire.unusable("its request has no id"))
    }

    /// Reads one stream of events, or one list of them if a server does not stream.
    async fn read_on(
        &self,
        id: &str,
        heard: &mut Heard,
        peer_request: &PeerRequest,
    ) -> Result<Option<Value>, ToolError> {
        let mut url = self.wire.below(&["getevents", id]);
        url.query_pairs_mut().append_pair("stream", "true");
        if let Some(last) = heard.last {
            url.query_pairs_mut().append_pair("since", &last.to_string());
        }
        let request = self.wire.get(url)?.header(ACCEPT, "text/event-stream");
        let response = tokio::time::timeout(REQUEST, self.wire.send(request)).await;
        let response = response.map_err(|_| self.silent())??;
        if media_type(&response) == "text/event-stream" {
            return self.read_stream(response, id, heard, peer_request).await;
        }
        let Value::Array(events) = self.wire.json(response).await? else {
            return Err(self.wire.unusable("its events are neither a stream nor a list"));
        };
        for event in events {
            if let Some(output) = self.hear(&event, id, heard, peer_request).await? {
                return Ok(Some(output));
            }
        }
        Ok(None)
    }

    async fn read_stream(
        &self,
        response: Response,
        id: &str,
        heard: &mut Heard,
        peer_request: &PeerRequest,
    ) -> Result<Option<Value>, ToolError> {
        let before = heard.last;
        let mut events = EventStream::new(Box::pin(lines(response, EVENT, STREAM)));
        loop {
            let event = match tokio::time::timeout(SILENCE, events.next()).await {
                // No event came for long, or the stream ended: the next stream continues after the last
                // event.
                Err(_) | Ok(None) => return Ok(None),
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(EventStreamError::Transport(BodyError::TooLarge(STREAM)))))
                    if heard.last > before =>
                {
                    return Ok(None);
                }
                Ok(Some(Err(EventStreamError::Transport(error @ BodyError::Lost(_))))) => {
                    return Err(ToolError::Failed(self.wire.says(&error.to_string())));
                }
                Ok(Some(Err(EventStreamError::Transport(error @ BodyError::TooLarge(_))))) => {
                    return Err(self.wire.unusable(&error.to_string()));
                }
                Ok(Some(Err(EventStreamError::Utf8(_) | EventStreamError::Parser(_)))) => {
                    return Err(self.wire.unusable("its stream is not one of server-sent events"));
                }
            };
            if event.event == "reset" {
                // The peer lost events in a failover: its stream begins anew.
                (heard.last, heard.tokens) = (None, 0);
                heard.artifacts.clear();
                continue;
            }
            let event = self.wire.parsed(event.data.as_bytes())?;
            if let Some(output) = self.hear(&event, id, heard, peer_request).await? {
                return Ok(Some(output));
            }
        }
    }

    fn silent(&self) -> ToolError {
        let seconds = REQUEST.as_secs();
        ToolError::Failed(self.wire.says(&format!("it did not answer within {seconds} s")))
    }

    /// Processes one event; returns the outcome, once the request has ended.
    async fn hear(
        &self,
        event: &Value,
        id: &str,
        heard: &mut Heard,
        peer_request: &PeerRequest,
    ) -> Result<Option<Value>, ToolError> {
        let number = event["id"].as_i64().filter(|number| heard.last.is_none_or(|last| *number > last));
        let Some(number) = number else { return Ok(None) };
        heard.events += 1;
        if heard.events > MOST_EVENTS {
            return Err(self.wire.unusable("it never ends"));
        }
        match event["type"].as_str().unwrap_or_default() {
            "text_output" if event["depth"].as_i64().unwrap_or(0) == 0 => {
                event["content"].as_str().unwrap_or_default().clone_into(&mut heard.text);
            }
            "completion_result" => {
                let used = |name: &str| event["usage"][name].as_i64().unwrap_or(0);
                heard.tokens = heard.tokens.saturating_add(used("input")).saturating_add(used("output"));
                peer_request.tokens_used.store(heard.tokens, Ordering::Relaxed);
            }
            "artifact_generated" if heard.artifacts.len() < MOST_ARTIFACTS => {
                heard.artifacts.push(artifact(event));
            }
            "wait_for_input" => self.asks(event, id, peer_request).await?,
            "request_completed" => return self.end(event, heard).map(Some),
            _ => {}
        }
        heard.last = Some(number);
        Ok(None)
    }

    /// Sends our user's answer, or returns the question to ask. An answer that was sent before has no second
    /// effect.
    async fn asks(&self, event: &Value, id: &str, peer_request: &PeerRequest) -> Result<(), ToolError> {
        let named = ["call_id", "review_id"].into_iter().find_map(|name| event[name].as_str());
        let question = named.map_or_else(|| format!("event-{}", event["id"]), str::to_owned);
        let Some(answer) = peer_request.answer(&question) else {
            let requested = agent::question(event["request_keys"].as_object());
            let requested = requested.map_err(|why| self.wire.unusable(&why))?;
            return Err(ToolError::Asks(Box::new(RemoteQuestion { id: question, question: requested })));
        };
        // Those before the newest were sent when our user gave them.
        if peer_request.answers.last().is_none_or(|(newest, _)| *newest != question) {
            return Ok(());
        }
        let mut body = json!({"type": "ResumeWithInput", "request_id": id, "request_keys": answer});
        if named.is_some() {
            body["request_metadata"] = json!({"call_id": question});
        }
        self.wire.resume(&body).await
    }

    fn end(&self, event: &Value, heard: &mut Heard) -> Result<Value, ToolError> {
        match event["finish_reason"].as_str().unwrap_or_default() {
            "success" => {
                let text = match &event["result"] {
                    Value::Null => std::mem::take(&mut heard.text),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let mut output = event["exposes"].as_object().cloned().unwrap_or_default();
                if !heard.artifacts.is_empty() {
                    output.insert("artifacts".to_owned(), std::mem::take(&mut heard.artifacts).into());
                }
                output.shift_insert(0, "text".to_owned(), text.into());
                Ok(Value::Object(output))
            }
            "canceled" => Err(self.wire.unusable("its request was canceled")),
            reason => {
                let error = &event["error"];
                let said = error["message"].as_str().or_else(|| error.as_str());
                let why = short(said.unwrap_or("no reason was given"));
                Err(self.wire.unusable(&format!("it ended with {}: {why}", short(reason))))
            }
        }
    }
}

/// The events of a request so far.
#[derive(Default)]
struct Heard {
    /// The number of its last event.
    last: Option<i64>,
    events: u32,
    /// Its latest text.
    text: String,
    tokens: i64,
    artifacts: Vec<Value>,
}

fn artifact(event: &Value) -> Value {
    json!({"name": event["name"], "url": event["url"], "mime_type": event["mime_type"], "id": event["artifact_id"]})
}
