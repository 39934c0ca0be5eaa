//! A client's request to an agent: one of the protocol's request types, read from a body (AP §3.3).

use crate::caller::{Caller, PeerRequest};
use crate::reply::Failure;
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use turnstone_domain::agent::Operation;
use turnstone_domain::principal::Principal;
use turnstone_domain::schema::Schema;
use turnstone_domain::{CallId, RawJson, digest};
use turnstone_ojs::{Fields, OjsError};
use utoipa::ToSchema;

/// A request's name has at most this many characters.
const NAME_CHARACTERS: usize = 200;
/// The members by which a ResumeWithInput names its question: a call or a review, as in `wait_for_input`.
const QUESTION: [&str; 2] = ["call_id", "review_id"];
/// The members that every request may have.
const BASE: [&str; 6] = ["type", "request_id", "run_id", "run_context", "logging_level", "request_metadata"];

/// A request to an agent. `type` names its type. Without it `input` makes a ChatRequest, `args` a ConfigureRequest,
/// `request_keys` a ResumeWithInput, and `request_id` alone a CancelRequest.
#[derive(Deserialize, ToSchema)]
pub(super) struct AgentRequest {
    /// ChatRequest, ConfigureRequest, CancelRequest, ResumeWithInput, or an operation of the agent's own.
    #[schema(value_type = Option<String>)]
    r#type: Option<RawJson>,
    /// The client's id of the request; to cancel and to resume, the id of the request that is meant. The same id with
    /// the same body is the same request.
    #[schema(value_type = Option<String>)]
    request_id: Option<RawJson>,
    /// The run that is continued or configured; without it a new one begins.
    #[schema(value_type = Option<String>)]
    run_id: Option<RawJson>,
    /// Kept and shown in the status.
    #[schema(value_type = Option<Map<String, Value>>)]
    run_context: Option<RawJson>,
    /// Kept and shown in the status.
    #[schema(value_type = Option<String>)]
    logging_level: Option<RawJson>,
    /// Kept and shown in the status; its `user` is the user of the request: `{"id": …, "email": …}`.
    #[schema(value_type = Option<Map<String, Value>>)]
    request_metadata: Option<RawJson>,
    /// ChatRequest: the text. An operation: its input.
    #[schema(value_type = Option<Value>)]
    input: Option<RawJson>,
    /// ConfigureRequest: settings for later requests.
    #[schema(value_type = Option<Map<String, Value>>)]
    args: Option<RawJson>,
    /// ResumeWithInput: the values that the request waits for.
    #[schema(value_type = Option<Map<String, Value>>)]
    request_keys: Option<RawJson>,
    /// ResumeWithInput: the question that is answered, as in `wait_for_input`; the answer then applies to no other
    /// question.
    #[schema(value_type = Option<String>)]
    call_id: Option<RawJson>,
    /// The same, when it is a review.
    #[schema(value_type = Option<String>)]
    review_id: Option<RawJson>,
}

/// The request.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Wish {
    /// One text to the agent.
    Chat(String),
    /// An operation of the agent's own (AP §3.2).
    Operation(Operation, Value),
    /// Settings for later requests.
    Configure(Map<String, Value>),
    /// The end of a request.
    Cancel,
    /// The values that a request waits for.
    Resume(Map<String, Value>),
}

impl Wish {
    /// Returns the protocol's name of the type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Chat(_) => "ChatRequest",
            Self::Operation(..) => "request for an operation",
            Self::Configure(_) => "ConfigureRequest",
            Self::Cancel => "CancelRequest",
            Self::Resume(_) => "ResumeWithInput",
        }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct ProtocolRequest {
    pub wish: Wish,
    /// The client's id of it, or of the request that it concerns.
    pub request_id: Option<String>,
    /// The run that it continues or configures.
    pub run_id: Option<String>,
    /// Kept unchanged, and returned in the status.
    pub kept: Map<String, Value>,
    /// Equal for bodies with the same meaning.
    pub digest: String,
    /// The context that another server sends with its request.
    pub peer_request: Option<PeerRequest>,
    /// The other server, when it is the caller.
    pub peer: Option<String>,
    /// The call or the review that is answered, when the client names it.
    pub question: Option<String>,
}

impl ProtocolRequest {
    /// Reads a body; `run` is the run of the query, which means the same as `run_id`.
    ///
    /// # Errors
    /// 400 for a body that is no JSON object, 422 for an object that is no request.
    pub fn read(bytes: &[u8], run: Option<&str>, operations: &[Operation]) -> Result<Self, Failure> {
        let fields = Fields::read(bytes)?;
        let names: Vec<String> = fields.0.names().map(str::to_owned).collect();
        let sent: AgentRequest = fields.typed()?;
        let said = text("run_id", sent.run_id.as_ref())?;
        if run.zip(said.as_deref()).is_some_and(|(run, said)| said != run) {
            return Err(wrong("run_id", "says another run than the query"));
        }
        let run_id = run.map(str::to_owned).or(said);
        let kind = kind(&sent, operations)?;
        let resumes = matches!(kind, Kind::Resume);
        let known = |name: &str| {
            BASE.contains(&name) || Some(name) == kind.member() || (resumes && QUESTION.contains(&name))
        };
        if let Some(name) = names.iter().find(|name| !known(name)) {
            return Err(wrong(name, &format!("is no member of a {}", kind.name())));
        }
        let request_id = text("request_id", sent.request_id.as_ref())?;
        if let Some(id) = &request_id {
            check_name(id)?;
        }
        text("logging_level", sent.logging_level.as_ref())?;
        let wish = kind.read(&sent)?;
        let mut kept = Map::new();
        for (name, member) in [
            ("logging_level", &sent.logging_level),
            ("request_metadata", &sent.request_metadata),
            ("run_context", &sent.run_context),
        ] {
            if let Some(value) = member {
                kept.insert(name.to_owned(), parsed(name, value)?);
            }
        }
        if ["request_metadata", "run_context"]
            .iter()
            .any(|name| kept.get(*name).is_some_and(|v| !v.is_object()))
        {
            return Err(wrong("request_metadata and run_context", "must be objects"));
        }
        let call = text("call_id", sent.call_id.as_ref())?;
        let question = match (call, text("review_id", sent.review_id.as_ref())?) {
            (Some(_), Some(_)) => return Err(wrong("call_id", "and `review_id` are two questions")),
            (call, review) => call.or(review),
        };
        let meant = json!([wish.name(), run_id, kept, members(&wish)]);
        let digest = digest::of_json(&meant);
        Ok(Self { wish, request_id, run_id, kept, digest, peer_request: None, peer: None, question })
    }

    /// Returns the same with its sender.
    ///
    /// # Errors
    /// 403 for members that are accepted from peers only, and for settings that a peer may not change.
    pub fn from(
        mut self,
        (caller, principal): (&Caller, &Principal),
        headers: &HeaderMap,
    ) -> Result<Self, Failure> {
        self.peer_request = caller.peer_request(principal, headers)?;
        self.peer = caller.peer().map(str::to_owned);
        if self.peer.is_some() && (self.run_id.is_some() || matches!(self.wish, Wish::Configure(_))) {
            let message =
                "This key is another server's, and such may neither configure agents nor continue runs.";
            return Err(OjsError::new(403, "forbidden", message, "Use a key of this server's own.").into());
        }
        Ok(self)
    }

    /// Returns the call or the review that is answered, when the client names it: in the body, or beside it.
    pub fn call(&self) -> Option<CallId> {
        let beside = || self.kept.get("request_metadata")?["call_id"].as_str().map(CallId::from);
        self.question.clone().map(CallId).or_else(beside)
    }

    /// Returns the user that the client names.
    pub fn user(&self) -> Option<String> {
        let metadata = self.kept.get("request_metadata")?;
        metadata["user"]["id"].as_str().or_else(|| metadata["user_id"].as_str()).map(str::to_owned)
    }
}

fn members(wish: &Wish) -> Value {
    match wish {
        Wish::Chat(input) => input.as_str().into(),
        Wish::Operation(operation, input) => json!([operation.name, input]),
        Wish::Configure(args) | Wish::Resume(args) => args.clone().into(),
        Wish::Cancel => Value::Null,
    }
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    Chat,
    Operation(&'a Operation),
    Configure,
    Cancel,
    Resume,
}

impl Kind<'_> {
    fn of_type(name: &str) -> Option<Self> {
        match name {
            "ChatRequest" | "chat_request" | "chat" => Some(Self::Chat),
            "ConfigureRequest" | "configure_request" | "configure" => Some(Self::Configure),
            "CancelRequest" | "cancel_request" | "cancel" => Some(Self::Cancel),
            "ResumeWithInput" | "resume_with_input" | "resume" => Some(Self::Resume),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Chat => "ChatRequest",
            Self::Operation(_) => "request for an operation",
            Self::Configure => "ConfigureRequest",
            Self::Cancel => "CancelRequest",
            Self::Resume => "ResumeWithInput",
        }
    }

    fn member(self) -> Option<&'static str> {
        match self {
            Self::Chat | Self::Operation(_) => Some("input"),
            Self::Configure => Some("args"),
            Self::Cancel => None,
            Self::Resume => Some("request_keys"),
        }
    }

    fn read(self, sent: &AgentRequest) -> Result<Wish, Failure> {
        let object = |name: &str, member: &Option<RawJson>| match member {
            Some(value) => parsed::<Map<String, Value>>(name, value),
            None => Err(wrong(name, &format!("is missing in this {}", self.name()))),
        };
        let id = || match sent.request_id {
            Some(_) => Ok(()),
            None => Err(wrong("request_id", &format!("must say which request the {} is about", self.name()))),
        };
        match self {
            Self::Chat => {
                let input = text("input", sent.input.as_ref())?;
                input.map(Wish::Chat).ok_or_else(|| wrong("input", "is missing in this ChatRequest"))
            }
            Self::Operation(operation) => {
                Ok(Wish::Operation(operation.clone(), typed(operation, sent.input.as_ref())?))
            }
            Self::Configure => object("args", &sent.args).map(Wish::Configure),
            Self::Cancel => id().map(|()| Wish::Cancel),
            Self::Resume => id().and_then(|()| object("request_keys", &sent.request_keys)).map(Wish::Resume),
        }
    }
}

/// Returns the input of an operation, when it has the form that the agent declares.
fn typed(operation: &Operation, input: Option<&RawJson>) -> Result<Value, Failure> {
    let input = input.map_or(Ok(Value::Null), |input| parsed("input", input))?;
    if let Some(schema) = &operation.input_schema {
        let schema =
            Schema::compile(schema).map_err(|why| wrong("input", &format!("cannot be checked: {why}")))?;
        schema
            .check(&input)
            .map_err(|why| wrong("input", &format!("does not fit `{}`: {why}", operation.name)))?;
    }
    Ok(input)
}

/// Returns the given type, or the one that the members determine (AP-A8).
fn kind<'a>(sent: &AgentRequest, operations: &'a [Operation]) -> Result<Kind<'a>, Failure> {
    let telling = [
        ("input", &sent.input, Kind::Chat),
        ("args", &sent.args, Kind::Configure),
        ("request_keys", &sent.request_keys, Kind::Resume),
    ];
    let mut telling = telling.into_iter().filter(|(_, member, _)| member.is_some());
    let first = telling.next();
    if let (Some((one, ..)), Some((other, ..))) = (first, telling.next()) {
        return Err(wrong(one, &format!("and `{other}` do not belong into one request")));
    }
    if let Some(name) = text("type", sent.r#type.as_ref())? {
        let own = || operations.iter().find(|operation| operation.name == name).map(Kind::Operation);
        let known = Kind::of_type(&name).or_else(own);
        return known.ok_or_else(|| {
            let shown: String = name.chars().take(60).collect();
            let types = "ChatRequest, ConfigureRequest, CancelRequest, ResumeWithInput";
            let own: String = operations.iter().map(|operation| format!(", {}", operation.name)).collect();
            wrong("type", &format!("`{shown}` is unknown to this agent; it understands {types}{own}"))
        });
    }
    match first {
        Some((.., kind)) => Ok(kind),
        None if sent.request_id.is_some() => Ok(Kind::Cancel),
        None => Err(wrong(
            "input",
            "is missing: without `type`, `input` makes a ChatRequest, `args` a \
                          ConfigureRequest, `request_keys` a ResumeWithInput, and `request_id` alone a CancelRequest",
        )),
    }
}

/// Names of requests are short and visible, and differ from ids of runs (AP-A3).
fn check_name(id: &str) -> Result<(), Failure> {
    let fits = (1..=NAME_CHARACTERS).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'%'));
    if !fits {
        let why = format!("must have 1 to {NAME_CHARACTERS} visible ASCII characters, none of them / ? # %");
        return Err(wrong("request_id", &why));
    }
    if id.starts_with("run_") {
        return Err(wrong("request_id", "must not begin with run_, as ids of runs may"));
    }
    Ok(())
}

fn text(name: &str, member: Option<&RawJson>) -> Result<Option<String>, Failure> {
    member.map(|value| value.parse().map_err(|_| wrong(name, "must be a text"))).transpose()
}

fn parsed<T: serde::de::DeserializeOwned>(name: &str, value: &RawJson) -> Result<T, Failure> {
    value.parse().map_err(|error| wrong(name, &format!("cannot be read: {error}")))
}

fn wrong(name: &str, why: &str) -> Failure {
    OjsError::validation(name, format!("{name} {why}.")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<Wish, u16> {
        ProtocolRequest::read(body.to_string().as_bytes(), None, &[])
            .map(|requested| requested.wish)
            .map_err(|failure| failure.0.status)
    }

    /// AP-A8: with `type` in either spelling, or determined by the members.
    #[test]
    fn a_request_is_identified_by_its_type_or_members() {
        let chat = Wish::Chat("hi".into());
        for kind in ["ChatRequest", "chat_request", "chat"] {
            assert_eq!(read(&json!({"type": kind, "input": "hi"})), Ok(chat.clone()));
        }
        assert_eq!(read(&json!({"input": "hi"})), Ok(chat));
        assert_eq!(read(&json!({"args": {}})), Ok(Wish::Configure(Map::new())));
        assert_eq!(read(&json!({"request_id": "r", "request_keys": {}})), Ok(Wish::Resume(Map::new())));
        assert_eq!(read(&json!({"request_id": "r", "request_metadata": {}})), Ok(Wish::Cancel));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (body, status) in [
            (json!({}), 422),
            (json!({"input": "a", "args": {}}), 422),
            (json!({"type": "Dance"}), 422),
            (json!({"type": "CancelRequest"}), 422),
            (json!({"request_keys": {}}), 422),
            (json!({"input": 5}), 422),
            (json!({"input": "a", "inputs": "b"}), 422),
            (json!({"input": "a", "request_id": "run_1"}), 422),
            (json!({"input": "a", "request_id": "a b"}), 422),
            (json!({"input": "a", "request_metadata": []}), 422),
            (json!({"input": "a", "call_id": "c"}), 422),
            (json!({"request_id": "r", "request_keys": {}, "call_id": "c", "review_id": "v"}), 422),
            (json!({"request_id": "r", "request_keys": {}, "call_id": 5}), 422),
            (json!([]), 400),
        ] {
            assert_eq!(read(&body), Err(status), "{body}");
        }
        let other = ProtocolRequest::read(br#"{"input":"a","run_id":"x"}"#, Some("y"), &[]);
        assert_eq!(other.map(|_| ()).map_err(|failure| failure.0.status), Err(422));
    }

    /// AP §3.2: a request for an operation of the agent's own has the form that the agent declares.
    #[test]
    fn an_operation_takes_what_it_declares() {
        let operation = Operation {
            name: "sum".into(),
            description: String::new(),
            input_schema: Some(json!({"type": "object", "required": ["numbers"]})),
            output_schema: None,
        };
        let read = |body: Value| {
            let requested =
                ProtocolRequest::read(body.to_string().as_bytes(), None, std::slice::from_ref(&operation));
            requested.map(|requested| requested.wish).map_err(|failure| failure.0.status)
        };
        let input = json!({"numbers": [1, 2]});
        assert_eq!(
            read(json!({"type": "sum", "input": input})),
            Ok(Wish::Operation(operation.clone(), input))
        );
        for wrong in
            [json!({"type": "sum", "input": {}}), json!({"type": "sum"}), json!({"type": "add", "input": {}})]
        {
            assert_eq!(read(wrong.clone()), Err(422), "{wrong}");
        }
    }

    #[test]
    fn equal_requests_have_one_digest() {
        let digest = |body: &str| ProtocolRequest::read(body.as_bytes(), None, &[]).unwrap().digest;
        assert_eq!(digest(r#"{"input":"a"}"#), digest(r#"{ "type":"chat", "input":"a", "run_id":null}"#));
        assert_ne!(digest(r#"{"input":"a"}"#), digest(r#"{"input":"b"}"#));
        assert_ne!(digest(r#"{"input":"a"}"#), digest(r#"{"input":"a","request_metadata":{"x":1}}"#));
    }
}
