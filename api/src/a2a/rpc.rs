//! JSON-RPC 2.0 in A2A: one call, one response or a stream of them, and errors with a reason.

use crate::reply::{self, Failure};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use turnstone_domain::RawJson;
use turnstone_ojs::body::refuse_nul;
use turnstone_ojs::{OjsError, request};
use utoipa::ToSchema;

/// A request of JSON-RPC 2.0.
#[derive(Deserialize, ToSchema)]
pub(super) struct A2aCall {
    /// 2.0.
    #[schema(value_type = String)]
    jsonrpc: Option<RawJson>,
    /// A text or a number.
    #[schema(value_type = Value)]
    id: Option<RawJson>,
    #[schema(value_type = A2aMethod)]
    method: Option<RawJson>,
    #[serde(default, deserialize_with = "request::sent")]
    #[schema(value_type = Option<Value>)]
    params: Option<RawJson>,
}

/// A method of A2A 1.0.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
pub(super) enum A2aMethod {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreateTaskPushNotificationConfig,
    GetTaskPushNotificationConfig,
    ListTaskPushNotificationConfigs,
    DeleteTaskPushNotificationConfig,
    GetExtendedAgentCard,
}

/// A client's call.
pub(super) struct RpcCall {
    /// Returned in every response.
    pub(super) id: Value,
    /// The method.
    pub(super) method: String,
    /// Its parameters.
    pub(super) params: Map<String, Value>,
}

/// Why a call failed.
#[derive(Debug)]
pub(super) struct RpcRefusal {
    code: i64,
    reason: &'static str,
    message: String,
}

impl RpcRefusal {
    /// Returns the error for a task that does not exist, or belongs to another caller.
    pub(super) fn no_task(id: &str) -> Self {
        Self::new(-32001, "TASK_NOT_FOUND", format!("There is no task {id} of this agent."))
    }

    /// Returns the error for a task that has ended.
    pub(super) fn not_cancelable(message: String) -> Self {
        Self::new(-32002, "TASK_NOT_CANCELABLE", message)
    }

    /// Returns the error for push notifications, which this server does not send.
    pub(super) fn no_push() -> Self {
        let message = "This server sends no push notifications; subscribe to the task, or register a webhook of the server.";
        Self::new(-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", message.to_owned())
    }

    /// Returns the error for a request that is not supported, or not in this state.
    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(-32004, "UNSUPPORTED_OPERATION", message.into())
    }

    /// Returns the error for a media type that the client accepts or sends, and the agent does not.
    pub(super) fn content_type(message: String) -> Self {
        Self::new(-32005, "CONTENT_TYPE_NOT_SUPPORTED", message)
    }

    /// Returns the error for an extended card: every caller sees the same one.
    pub(super) fn no_extended_card() -> Self {
        let message = "There is no extended card; the card says all.".to_owned();
        Self::new(-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", message)
    }

    /// Returns the error for another version.
    pub(super) fn version(spoken: &str) -> Self {
        let message = format!("A2A {spoken} is not supported; send the header `A2A-Version: 1.0`.");
        Self::new(-32009, "VERSION_NOT_SUPPORTED", message)
    }

    /// Returns the error for a body that is no JSON.
    pub(super) fn unreadable(why: &str) -> Self {
        Self::new(-32700, "PARSE_ERROR", format!("The body is not JSON: {why}."))
    }

    /// Returns the error for a body that is no call.
    pub(super) fn malformed(message: impl Into<String>) -> Self {
        Self::new(-32600, "INVALID_REQUEST", message.into())
    }

    /// Returns the error for an unknown method.
    pub(super) fn no_method(name: &str) -> Self {
        let name: String = name.chars().take(80).collect();
        Self::new(
            -32601,
            "METHOD_NOT_FOUND",
            format!("The method `{name}` is not supported; docs/A2A.md lists those that are."),
        )
    }

    /// Returns the error for a wrong parameter.
    pub(super) fn parameter(name: &str, why: &str) -> Self {
        Self::new(-32602, "INVALID_PARAMS", format!("`{name}` {why}."))
    }

    fn new(code: i64, reason: &'static str, message: String) -> Self {
        Self { code, reason, message }
    }
}

impl From<Failure> for RpcRefusal {
    fn from(Failure(error): Failure) -> Self {
        error.into()
    }
}

impl From<turnstone_store::StoreError> for RpcRefusal {
    fn from(error: turnstone_store::StoreError) -> Self {
        Failure::from(error).into()
    }
}

impl From<OjsError> for RpcRefusal {
    fn from(error: OjsError) -> Self {
        let message = format!("{} {}", error.message, error.hint);
        match error.status {
            500.. => Self::new(-32603, "INTERNAL_ERROR", message),
            _ => Self::new(-32602, "INVALID_PARAMS", message),
        }
    }
}

impl RpcCall {
    /// Reads a call. A refusal contains the id as far as it could be read.
    pub(super) fn read(body: &[u8]) -> Result<Self, (Value, RpcRefusal)> {
        // Depth and duplicate names are checked as in any other body.
        let sent: A2aCall = request::read(body)
            .map_err(|error| (Value::Null, RpcRefusal::unreadable(error.message.trim_end_matches('.'))))?;
        let id = sent.id.and_then(|id| id.parse::<Value>().ok()).unwrap_or_default();
        if !(id.is_string() || id.is_number()) {
            let why = "`id` must be there, a text or a number: every call of A2A has an answer.";
            return Err((Value::Null, RpcRefusal::malformed(why)));
        }
        let text = |member: Option<RawJson>| member.and_then(|value| value.parse::<String>().ok());
        if let Err(nul) = refuse_nul(body) {
            return Err((id, nul.into()));
        }
        if text(sent.jsonrpc).as_deref() != Some("2.0") {
            return Err((id, RpcRefusal::malformed("`jsonrpc` must be \"2.0\".")));
        }
        let Some(method) = text(sent.method) else {
            return Err((id, RpcRefusal::malformed("`method` must be a text.")));
        };
        let params = match sent.params {
            None => Map::new(),
            Some(params) => match params.parse() {
                Ok(params) => params,
                Err(_) => return Err((id, RpcRefusal::parameter("params", "must be an object"))),
            },
        };
        Ok(Self { id, method, params })
    }
}

/// Returns the answer to a call.
pub(super) fn answer(id: &Value, result: Result<Value, RpcRefusal>) -> Response {
    reply::ok(&body(id, result))
}

/// Returns the same, in the form of a body or a frame of a stream.
pub(super) fn body(id: &Value, result: Result<Value, RpcRefusal>) -> Value {
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcRefusal { code, reason, message }) => {
            let info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
                              "domain": "a2a-protocol.org", "metadata": {}});
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": [info]}})
        }
    }
}
