//! The client of A2A 1.0 and 0.3 over JSON-RPC: the card, SendMessage, GetTask, CancelTask. Answers of 0.3 are read as
//! those of 1.0.
//!
//! The id of a message derives from the id of the call. So a server that recognizes repeated messages begins
//! one task for a message sent twice. The task's id is the handle: once it is journalled, the message is not
//! sent again.

use super::agent::{self, Begun, Polling, RemoteCancellation, RemoteRequest};
use super::wire::{REQUEST, Wire, short};
use crate::tool::identity::PeerRequest;
use crate::tool::outbound::describe;
use crate::tool::{RemoteQuestion, ToolError};
use reqwest::RequestBuilder;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;
use turnstone_domain::digest;
use turnstone_domain::question::Question;
use url::Url;

/// The path of the card below the agent's address.
const CARD: [&str; 2] = [".well-known", "agent-card.json"];
/// The longest question, in characters.
const QUESTION: usize = 4_000;
/// The newest messages of a task that are asked for; an answer without parts of its own is the last of them.
const HISTORY: u32 = 10;
/// The error of a message to a task that asks nothing, or has ended (A2A 1.0 §5.4).
const UNSUPPORTED: i64 = -32004;
/// The error of a request for an unknown task.
const NO_TASK: i64 = -32001;
/// The error of cancelling a task that has ended.
const OVER: i64 = -32002;

/// A remote agent that is called by A2A.
#[derive(Debug)]
pub(super) struct A2a {
    wire: Wire,
    place: Url,
    version: Version,
}

/// The version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    V1,
    V03,
}

impl Version {
    /// Returns the name of a method of 1.0 in this version.
    fn method(self, name: &'static str) -> &'static str {
        match (self, name) {
            (Self::V1, name) => name,
            (Self::V03, "SendMessage") => "message/send",
            (Self::V03, "GetTask") => "tasks/get",
            (Self::V03, _) => "tasks/cancel",
        }
    }

    /// Returns the parameters of a message.
    fn message(self, mut message: Value, text: &str) -> Value {
        match self {
            Self::V1 => {
                message["role"] = "ROLE_USER".into();
                message["parts"] = json!([{"text": text}]);
                json!({"message": message, "configuration": {"returnImmediately": true}})
            }
            Self::V03 => {
                message["kind"] = "message".into();
                message["role"] = "user".into();
                message["parts"] = json!([{"kind": "text", "text": text}]);
                json!({"message": message, "configuration": {"blocking": false}})
            }
        }
    }

    /// Returns a result in the form of 1.0.
    fn result(self, method: &str, mut result: Value) -> Value {
        if self == Self::V1 {
            return result;
        }
        if let Some(state) = result["status"]["state"].as_str() {
            let state = format!("TASK_STATE_{}", state.to_ascii_uppercase().replace('-', "_"));
            result["status"]["state"] = state.into();
        }
        match (method, result["status"].is_object()) {
            ("SendMessage", true) => json!({"task": result}),
            ("SendMessage", false) => json!({"message": result}),
            _ => result,
        }
    }
}

impl A2a {
    /// Reads an agent's card; returns the agent with its purpose.
    pub(super) async fn read(wire: Wire) -> Result<(Self, String), ToolError> {
        let response = wire.send(wire.get(wire.below(&CARD))?.timeout(REQUEST)).await?;
        let card = wire.json(response).await?;
        let (place, version) = place(&wire, &card)?;
        let reported = card["description"].as_str().or_else(|| card["name"].as_str());
        let reported =
            reported.ok_or_else(|| wire.unusable("its card says neither name nor description"))?.to_owned();
        Ok((Self { wire, place, version }, reported))
    }

    /// Sends the message that begins a task.
    pub(super) async fn begin(&self, requested: &RemoteRequest<'_>) -> Result<Begun, ToolError> {
        let answer = self.sent(requested, json!({"messageId": requested.call})).await?;
        if answer["message"].is_object() {
            return Ok(Begun::Done(output(&[&answer["message"]["parts"]])));
        }
        Ok(Begun::Under(self.handle(&answer["task"])?))
    }

    /// Sends a message and returns the answer, in the form of 1.0.
    async fn sent(&self, requested: &RemoteRequest<'_>, message: Value) -> Result<Value, ToolError> {
        let params = self.version.message(message, &requested.text);
        let sent = self.call("SendMessage", &params, requested.peer_request, true).await?;
        sent.map_err(|refusal| self.refused(&refusal))
    }

    fn handle(&self, task: &Value) -> Result<Value, ToolError> {
        let Some(id) = task["id"].as_str().filter(|id| !id.is_empty()) else {
            return Err(self.wire.unusable("it answered with neither a message nor a task"));
        };
        let old = self.version == Version::V03;
        Ok(json!({"task": id, "context": task["contextId"], "rpc": self.place.as_str(), "old": old}))
    }

    /// Returns the agent at an address, by its card, or by 0.3 without a card.
    pub(super) async fn of_document(wire: Wire) -> Result<Self, ToolError> {
        let response = match wire.send(wire.get(wire.below(&CARD))?.timeout(REQUEST)).await {
            Ok(response) => Some(response),
            // Its server answers, and has no card.
            Err(ToolError::Final(_)) => None,
            Err(ToolError::Failed(text)) => return Err(ToolError::Unreached(text)),
            Err(error) => return Err(error),
        };
        let card = match response {
            Some(response) => wire.json(response).await.unwrap_or_default(),
            None => Value::Null,
        };
        let is_card = card["url"].is_string() || card["supportedInterfaces"].is_array();
        let (place, version) =
            if is_card { place(&wire, &card)? } else { (wire.url().clone(), Version::V03) };
        Ok(Self { wire, place, version })
    }

    /// Sends the next message of a conversation.
    pub(super) async fn say(
        &self,
        requested: &RemoteRequest<'_>,
        context: Option<&str>,
        task: Option<&str>,
    ) -> Result<Begun, ToolError> {
        let mut message = json!({"messageId": requested.call});
        for (name, id) in [("contextId", context), ("taskId", task)] {
            if let Some(id) = id {
                message[name] = id.into();
            }
        }
        let answer = self.sent(requested, message).await?;
        let said = &answer["message"];
        if said.is_object() {
            let mut output = output(&[&said["parts"]]);
            output["context"] = said["contextId"].clone();
            return Ok(Begun::Done(output));
        }
        let handle = self.handle(&answer["task"])?;
        Ok(self.said(&answer["task"])?.map_or(Begun::Under(handle), Begun::Done))
    }

    /// Polls a task of a conversation until it has an answer, at this interval.
    pub(super) async fn hear(
        &self,
        handle: &Value,
        pause: Duration,
        most_lost: u32,
    ) -> Result<Value, ToolError> {
        let mut params = json!({"id": handle["task"]});
        params["historyLength"] = HISTORY.into();
        let mut lost = 0;
        loop {
            match self.call("GetTask", &params, None, false).await {
                Ok(Ok(task)) => {
                    lost = 0;
                    if let Some(output) = self.said(&task)? {
                        return Ok(output);
                    }
                }
                Ok(Err(refusal)) => return Err(self.refused(&refusal)),
                Err(ToolError::Failed(_) | ToolError::Busy(..)) if lost < most_lost => lost += 1,
                Err(error) => return Err(error),
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns the answer of a task that has ended or waits for a message, with the place of the next message.
    fn said(&self, task: &Value) -> Result<Option<Value>, ToolError> {
        let waits = task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED";
        let mut found = match self.end(task)? {
            Some(output) => output,
            None if waits => output(&[&task["status"]["message"]["parts"]]),
            None => return Ok(None),
        };
        if found["text"] == "" && found.get("data").is_none() {
            let is_own = |message: &&Value| message["role"] == "agent" || message["role"] == "ROLE_AGENT";
            let last = parts(&task["history"]).filter(is_own).last();
            found = output(&[&last.unwrap_or(&Value::Null)["parts"]]);
        }
        found["context"] = task["contextId"].clone();
        if waits {
            found["task"] = task["id"].clone();
        }
        Ok(Some(found))
    }

    /// Polls a task until it has ended or asks a question that our user has not answered yet.
    pub(super) async fn follow(
        &self,
        handle: &Value,
        requested: &RemoteRequest<'_>,
        peer_request: &PeerRequest,
    ) -> Result<Value, ToolError> {
        let params = json!({"id": handle["task"], "historyLength": 0});
        let (mut polling, mut given) = (Polling::default(), BTreeSet::new());
        loop {
            match self.call("GetTask", &params, None, false).await {
                Ok(Ok(task)) => {
                    polling.heard();
                    let used = task["metadata"]["tokensUsed"].as_i64().unwrap_or(0);
                    peer_request.tokens_used.store(used, Ordering::Relaxed);
                    if let Some(output) = self.end(&task)? {
                        return Ok(output);
                    }
                    if task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED" {
                        let question = self.asks(&task, peer_request)?;
                        if !given.contains(&question.id) {
                            match self.answer(handle, requested, &question, peer_request).await {
                                Ok(()) => {
                                    given.insert(question.id);
                                    polling = Polling::default();
                                }
                                Err(error) => polling.lost(error)?,
                            }
                        }
                    }
                }
                Ok(Err(refusal)) => return Err(self.refused(&refusal)),
                Err(error) => polling.lost(error)?,
            }
            polling.pause().await;
        }
    }

    /// Returns an agent of which a task is known, if its address has the configured origin.
    pub(super) fn known(wire: Wire, handle: Option<&Value>) -> Result<Self, Wire> {
        let place = handle.and_then(|handle| Url::parse(handle["rpc"].as_str()?).ok());
        let is_old = handle.is_some_and(|handle| handle["old"] == true);
        let version = if is_old { Version::V03 } else { Version::V1 };
        match place.filter(|place| place.origin() == wire.url().origin()) {
            Some(place) => Ok(Self { wire, place, version }),
            None => Err(wire),
        }
    }

    /// Cancels a task. Without a handle the task's id is unknown here.
    pub(super) async fn cancel(&self, handle: Option<&Value>) -> Result<RemoteCancellation, ToolError> {
        let Some(handle) = handle else {
            let why = "it is unknown whether a task has begun, because the message was never answered";
            return Err(self.wire.unusable(why));
        };
        let method = self.version.method("CancelTask");
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": handle["task"]}});
        let request = self.versioned(self.wire.post(self.place.clone())?.timeout(REQUEST));
        let lost = |error: reqwest::Error| ToolError::Failed(self.wire.says(&describe(&error)));
        let response = request.json(&call).send().await.map_err(lost)?;
        let standing = self.wire.standing(response.status().as_u16())?;
        if standing == RemoteCancellation::Unknown {
            return Ok(standing);
        }
        match self.wire.json(response).await?["error"]["code"].as_i64() {
            None | Some(OVER) => Ok(RemoteCancellation::Ends),
            Some(NO_TASK) => Ok(RemoteCancellation::Unknown),
            Some(code) => Err(self.wire.unusable(&format!("it refuses to end the task, with {code}"))),
        }
    }

    /// Sends a call. The inner error is a refusal that a retry would repeat. `once` means that the request
    /// may be sent twice only if it certainly never arrived.
    async fn call(
        &self,
        method: &'static str,
        params: &Value,
        peer_request: Option<&PeerRequest>,
        once: bool,
    ) -> Result<Result<Value, Value>, ToolError> {
        let name = self.version.method(method);
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": name, "params": params});
        let mut request = self.versioned(self.wire.post(self.place.clone())?.timeout(REQUEST));
        if let Some(peer_request) = peer_request {
            request = request.headers(peer_request.headers());
        }
        let request = request.json(&call);
        let response = match once {
            true => self.wire.send_once(request, |status| (200..300).contains(&status)).await?,
            false => self.wire.send(request).await?,
        };
        let mut reported = match self.wire.json(response).await {
            // A call that was accepted has begun, even if the rest of the answer is lost.
            Err(ToolError::Failed(text)) if once => return Err(ToolError::Lost(text)),
            reported => reported?,
        };
        let error = reported["error"].take();
        match error["code"].as_i64() {
            None if reported["result"].is_object() => {
                Ok(Ok(self.version.result(method, reported["result"].take())))
            }
            None => Err(self.wire.unusable("its answer is none of JSON-RPC")),
            Some(-32603) => Err(ToolError::Failed(self.wire.says(&said(&error)))),
            Some(_) => Ok(Err(error)),
        }
    }

    fn versioned(&self, request: RequestBuilder) -> RequestBuilder {
        match self.version {
            Version::V1 => request.header("a2a-version", "1.0"),
            Version::V03 => request,
        }
    }

    fn refused(&self, error: &Value) -> ToolError {
        self.wire.unusable(&format!("it refused: {}", said(error)))
    }

    /// Returns the outcome of a task that has ended.
    fn end(&self, task: &Value) -> Result<Option<Value>, ToolError> {
        let ended = |how: &str| {
            let why = short(&words(&task["status"]["message"]["parts"]));
            let why = if why.is_empty() { "no reason was given".to_owned() } else { why };
            Err(self.wire.unusable(&format!("its task {how}: {why}")))
        };
        match task["status"]["state"].as_str().unwrap_or_default() {
            "TASK_STATE_COMPLETED" => {
                let artifacts = task["artifacts"].as_array().map(Vec::as_slice).unwrap_or_default();
                let parts: Vec<&Value> = artifacts.iter().map(|artifact| &artifact["parts"]).collect();
                Ok(Some(match parts.as_slice() {
                    [] => output(&[&task["status"]["message"]["parts"]]),
                    parts => output(parts),
                }))
            }
            "TASK_STATE_FAILED" => ended("failed"),
            "TASK_STATE_REJECTED" => ended("was rejected"),
            "TASK_STATE_CANCELED" => ended("was canceled"),
            "TASK_STATE_AUTH_REQUIRED" => ended("wants its client to authorise something"),
            "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING" | "TASK_STATE_INPUT_REQUIRED" => Ok(None),
            other => Err(self.wire.unusable(&format!("its task has no state of A2A: {}", short(other)))),
        }
    }

    /// Returns the question of a task, if our user has answered it.
    fn asks(&self, task: &Value, peer_request: &PeerRequest) -> Result<RemoteQuestion, ToolError> {
        let message = &task["status"]["message"];
        let prompt: String = words(&message["parts"]).chars().take(QUESTION).collect();
        let keys = parts(&message["parts"]).find_map(|part| part["data"]["request_keys"].as_object());
        let id = message["messageId"].as_str().map_or_else(|| digest::of_text(&prompt), str::to_owned);
        let question = match keys {
            Some(keys) => agent::question(Some(keys)),
            None if prompt.is_empty() => {
                Question::read(&json!({"question": "It asks for more input and does not say what."}))
            }
            None => Question::read(&json!({"question": prompt})),
        };
        let requested = RemoteQuestion { id, question: question.map_err(|why| self.wire.unusable(&why))? };
        if peer_request.answer(&requested.id).is_some() {
            Ok(requested)
        } else {
            Err(ToolError::Asks(Box::new(requested)))
        }
    }

    /// Sends our user's answer to a task. A task that no longer asks has it already.
    async fn answer(
        &self,
        handle: &Value,
        requested: &RemoteRequest<'_>,
        question: &RemoteQuestion,
        peer_request: &PeerRequest,
    ) -> Result<(), ToolError> {
        let nothing = Map::new();
        let values = peer_request.answer(&question.id).unwrap_or(&nothing);
        let mut message = json!({"messageId": digest::of_json(&json!([requested.call, question.id])), "taskId": handle["task"]});
        if handle["context"].is_string() {
            message["contextId"] = handle["context"].clone();
        }
        let text = match (values.get("answer"), question.question.only_key()) {
            (Some(Value::String(text)), Some("answer")) => Some(text.as_str()),
            _ => None,
        };
        let mut params = self.version.message(message, text.unwrap_or_default());
        if text.is_none() {
            let mut part = json!({"data": values});
            if self.version == Version::V03 {
                part["kind"] = "data".into();
            }
            params["message"]["parts"] = json!([part]);
        }
        match self.call("SendMessage", &params, requested.peer_request, false).await? {
            Err(refusal) if refusal["code"] != UNSUPPORTED => Err(self.refused(&refusal)),
            _ => Ok(()),
        }
    }
}

/// Returns the supported interface of the card. It must be on the card's own host, so that requests go
/// nowhere else. A card of 0.3 has its address at the top.
fn place(wire: &Wire, card: &Value) -> Result<(Url, Version), ToolError> {
    let interfaces = card["supportedInterfaces"].as_array().map(Vec::as_slice).unwrap_or_default();
    let starts = |version: &Value, with: &str| version.as_str().is_some_and(|text| text.starts_with(with));
    let new = interfaces.iter().filter(|interface| {
        interface["protocolBinding"] == "JSONRPC" && starts(&interface["protocolVersion"], "1.")
    });
    let is_old = starts(&card["protocolVersion"], "0.");
    let transports = [Value::Null, "JSONRPC".into()];
    let old = is_old.then_some(card).filter(|card| transports.contains(&card["preferredTransport"]));
    let mut elsewhere = None;
    for (interface, version) in
        new.map(|interface| (interface, Version::V1)).chain(old.map(|card| (card, Version::V03)))
    {
        let url = interface["url"].as_str().and_then(|url| wire.url().join(url).ok());
        match url.filter(|url| url.origin() == wire.url().origin()) {
            Some(url) => return Ok((url, version)),
            None => elsewhere = interface["url"].as_str(),
        }
    }
    Err(wire.unusable(&match elsewhere {
        Some(url) => format!("its card names {}, which is on another host", short(url)),
        None => "its card has no interface of A2A 1.x or 0.3 over JSON-RPC".to_owned(),
    }))
}

fn said(error: &Value) -> String {
    short(error["message"].as_str().unwrap_or("no reason was given"))
}

fn parts(parts: &Value) -> impl Iterator<Item = &Value> {
    parts.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

/// Returns the texts of parts, one per line.
fn words(of: &Value) -> String {
    parts(of).filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Returns parts as the outcome of a call: the texts as `text`, data beside it, and the addresses of files.
fn output(of: &[&Value]) -> Value {
    let all = || of.iter().flat_map(|list| parts(list));
    let text: Vec<&str> = all().filter_map(|part| part["text"].as_str()).collect();
    let data: Vec<&Value> =
        all().filter_map(|part| part.get("data")).filter(|data| !data.is_null()).collect();
    let files: Vec<Value> = all()
        .filter(|part| part["url"].is_string())
        .map(|part| json!({"url": part["url"], "name": part["filename"], "mediaType": part["mediaType"]}))
        .collect();
    let mut output = json!({"text": text.join("\n")});
    match data.as_slice() {
        [] => {}
        [only] => output["data"] = (*only).clone(),
        several => output["data"] = json!(several),
    }
    if !files.is_empty() {
        output["files"] = files.into();
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn wire() -> Wire {
        let client = crate::tool::outbound::open_client().unwrap();
        Wire::new(Url::parse("https://a.example/agent").unwrap(), BTreeMap::new(), client)
    }

    /// Issue 7, "A2A": requests go to the host of the card, by a supported version and binding.
    #[test]
    fn a_card_leads_to_its_own_host_only() {
        let card = |url: &str, binding: &str, version: &str| json!({"supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": version}]});
        let found = place(&wire(), &card("https://a.example/rpc", "JSONRPC", "1.0")).unwrap();
        assert_eq!((found.0.as_str(), found.1), ("https://a.example/rpc", Version::V1));
        let old = json!({"url": "https://a.example/a2a", "protocolVersion": "0.3.0"});
        let found = place(&wire(), &old).unwrap();
        assert_eq!((found.0.as_str(), found.1), ("https://a.example/a2a", Version::V03));
        for (card, words) in [
            (card("https://b.example/rpc", "JSONRPC", "1.0"), "another host"),
            (card("http://169.254.169.254/latest", "JSONRPC", "1.0"), "another host"),
            (card("https://a.example/rpc", "GRPC", "1.0"), "no interface"),
            (card("https://a.example/rpc", "JSONRPC", "0.3"), "no interface"),
            (json!([]), "no interface"),
        ] {
            let error = place(&wire(), &card).unwrap_err();
            assert!(matches!(&error, ToolError::Final(text) if text.contains(words)), "{error:?}");
        }
    }

    /// Issue 7, "A2A": when the answer to a message is lost half-way, the task that it began is unknown, so
    /// it is not sent again.
    #[tokio::test]
    async fn a_message_whose_answer_was_lost_may_have_begun_a_task() {
        let broken = || async {
            let pieces = [Ok("{"), Err(std::io::Error::other("cut"))];
            axum::body::Body::from_stream(futures::stream::iter(pieces))
        };
        let app = axum::Router::new().fallback(broken);
        let (address, _serving) = crate::served::serve(app).await;
        let url = Url::parse(&format!("http://{address}/agent")).unwrap();
        let wire = Wire::new(url.clone(), BTreeMap::new(), crate::tool::outbound::open_client().unwrap());
        let agent = A2a { wire, place: url, version: Version::V1 };
        let requested = RemoteRequest { call: "c-1", text: "go".to_owned(), peer_request: None };
        assert!(matches!(agent.begin(&requested).await, Err(ToolError::Lost(_))));
        let ended = agent.cancel(Some(&json!({"task": "t-1"}))).await;
        assert!(matches!(ended, Err(ToolError::Failed(_))), "what may be sent twice is: {ended:?}");
    }

    #[test]
    fn parts_become_an_outcome() {
        let first = json!([{"text": "a"}, {"data": {"n": 1}}]);
        let second = json!([{"text": "b"}, {"url": "https://a.example/f", "mediaType": "image/png"}]);
        let reported = output(&[&first, &second]);
        assert_eq!((&reported["text"], &reported["data"]), (&json!("a\nb"), &json!({"n": 1})));
        assert_eq!(reported["files"][0]["url"], "https://a.example/f");
        assert_eq!(output(&[&Value::Null]), json!({"text": ""}));
    }
}
