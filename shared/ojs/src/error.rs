//! The one shape of errors (OJS HTTP binding §6): a stable code, a sentence, and what to do next.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnstone_domain::JobError;
use turnstone_domain::error::FailureKind;
use utoipa::ToSchema;

/// The code of an enqueue into a full queue; in upper case, as the protocol has it.
pub const QUEUE_FULL: &str = "QUEUE_FULL";

/// The code of an enqueue beyond a tenant's limit.
pub const TENANT_LIMIT_EXCEEDED: &str = "TENANT_LIMIT_EXCEEDED";

/// The code of a request with a cursor whose events are not in this database.
pub const CURSOR_LOST: &str = "cursor_lost";

/// An error as a client sees it.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct OjsError {
    /// The HTTP status.
    pub status: u16,
    /// Stable; programs decide by it.
    pub code: &'static str,
    /// The cause and the place, in one or two sentences.
    pub message: String,
    /// True if the same request may succeed later without being changed.
    pub retryable: bool,
    /// The class of the error; the code itself for errors of the protocol.
    pub error_type: &'static str,
    /// The next step.
    pub hint: &'static str,
    /// Facts for programs, such as the field.
    pub details: Box<Map<String, Value>>,
}

impl OjsError {
    /// Returns an error that a repeated request will get again.
    #[must_use]
    pub fn new(status: u16, code: &'static str, message: impl Into<String>, hint: &'static str) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            retryable: false,
            error_type: code,
            hint,
            details: Box::default(),
        }
    }

    /// Returns the address of the code's explanation.
    #[must_use]
    pub fn docs_url(&self) -> String {
        format!("https://openjobspec.org/errors/{}", self.code.to_uppercase())
    }

    /// Adds a fact for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Names the member by the object in which it was sent: `from` is replaced by `to`.
    #[must_use]
    pub fn of_member(self, from: &str, to: &str) -> Self {
        let field = self.details.get("field").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(rest) = field.strip_prefix(from) else { return self };
        let sent = format!("{to}{rest}");
        let message = self.message.replace(&field, &sent);
        Self { message, ..self }.with("field", sent)
    }

    /// 400: the body is not a JSON object.
    #[must_use]
    pub fn invalid_payload(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_payload", message, "Send one JSON object in UTF-8.")
    }

    /// 400: a field of the request is missing or wrong; `why` completes the sentence that begins with the field.
    #[must_use]
    pub fn invalid_request(field: &str, why: impl AsRef<str>) -> Self {
        let hint = "Correct the field that the message names and send the request again.";
        Self::new(400, "invalid_request", format!("{field} {}", why.as_ref()), hint).with("field", field)
    }

    /// 400: the text of this field holds the character U+0000.
    #[must_use]
    pub fn nul(field: &str) -> Self {
        Self::invalid_request(
            field,
            "must not contain the character U+0000 (NUL): no text with it can be stored",
        )
    }

    /// 422: the request is well formed, but a policy in it makes no sense; the message names the field.
    #[must_use]
    pub fn validation(field: &str, message: impl Into<String>) -> Self {
        let hint = "Correct the field that the message names and send the request again.";
        Self::new(422, "validation_error", message, hint).with("field", field)
    }

    /// 422: an unsupported version or feature.
    #[must_use]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(422, "unsupported", message, "GET /ojs/manifest says what this server speaks.")
    }

    /// 404: there is no `what` with this id.
    #[must_use]
    pub fn not_found(what: &str, id: &str) -> Self {
        let hint = "Check the id; it is known only to the server that it was made on.";
        Self::new(404, "not_found", format!("There is no {what} `{id}`."), hint).with("id", id)
    }

    /// 409: the state of the thing does not allow this.
    #[must_use]
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "conflict", message, "Read it again: its state says what can still be done.")
    }

    /// 409: the lease token of a worker's request is one of an earlier attempt, or of another job. Nothing changed.
    #[must_use]
    pub fn stale_lease(message: impl Into<String>) -> Self {
        let hint = "Stop the work on this job: another attempt may have it. Fetch again.";
        Self::new(409, "stale_lease", message, hint)
    }

    /// 409: a job with this id exists already (OJS core §6.1).
    #[must_use]
    pub fn duplicate(id: &str) -> Self {
        let hint = "If this was a repeated request, the first one was accepted: GET the job. Otherwise send another id.";
        Self::new(409, "duplicate", format!("A job with id {id} exists already; nothing was stored."), hint)
            .with("existing_job_id", id)
    }

    /// 409: several tenants have a job or a workflow with this id, and the request names no tenant.
    #[must_use]
    pub fn ambiguous(id: &str, tenants: &[Option<String>]) -> Self {
        let named: Vec<&str> = tenants.iter().map(|tenant| tenant.as_deref().unwrap_or("none")).collect();
        let message = format!("The id {id} belongs to several tenants: {}.", named.join(", "));
        let hint = "Name the tenant in the header X-OJS-Tenant.";
        Self::new(409, "ambiguous_id", message, hint).with("id", id).with("tenants", tenants)
    }

    /// 409: the events up to a cursor are not in this database. `details` says where to begin.
    #[must_use]
    pub fn cursor_lost(cursor: &str) -> Self {
        let message = format!("The events up to cursor {cursor} are not in this database.");
        let hint = "They were deleted, or the database lost them in a failover or is an older copy. Continue from \
                    details.begin; skip events whose ids you know.";
        Self::new(409, CURSOR_LOST, message, hint).with("cursor", cursor)
    }

    /// 409: a workflow with this id exists already.
    #[must_use]
    pub fn duplicate_workflow(id: &str) -> Self {
        let hint = "If this was a repeated request, the first one was accepted: GET the workflow. Otherwise send another id.";
        let message = format!("A workflow with id {id} exists already; nothing was stored.");
        Self::new(409, "duplicate", message, hint).with("existing_workflow_id", id)
    }

    /// 409: a job that has to be unique conflicts with another one (OJS unique jobs §4).
    #[must_use]
    pub fn not_unique(existing: &str) -> Self {
        let hint = "The other job replaces this one; GET it, or choose another on_conflict.";
        let message = format!("Job {existing} is like this one, which has to be unique; nothing was stored.");
        Self::new(409, "duplicate", message, hint).with("existing_job_id", existing)
    }

    /// 429: the queue has as many jobs as it may have (OJS backpressure §4). The same request succeeds once workers have
    /// caught up.
    #[must_use]
    pub fn queue_full(queue: &str, depth: u64, bound: u64) -> Self {
        let hint = "Wait as long as Retry-After says, or add workers, or raise the queue's max_depth.";
        let message = format!(
            "Queue {queue} is full: {depth} jobs wait in it, and it is bounded to {bound}; nothing was stored."
        );
        let error = Self::new(429, QUEUE_FULL, message, hint);
        Self { retryable: true, ..error }.with("queue", queue).with("depth", depth).with("bound", bound)
    }

    /// 429: a tenant has as much as it may have (OJS multi-tenancy §8.2). `limit` is the word on the wire.
    #[must_use]
    pub fn tenant_limit(tenant: &str, limit: &'static str, current: i64, maximum: i64) -> Self {
        let hint = "Wait as long as Retry-After says, or ask for a wider limit of the tenant.";
        let message = format!(
            "Tenant {tenant} would exceed {limit}: it has {current} of {maximum}; nothing was stored."
        );
        let error = Self::new(429, TENANT_LIMIT_EXCEEDED, message, hint);
        Self { retryable: true, ..error }
            .with("tenant_id", tenant)
            .with("limit", limit)
            .with("current", current)
            .with("maximum", maximum)
    }

    /// 403: it belongs to another owner.
    #[must_use]
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "forbidden", message, "Send the header X-OJS-Tenant of whom it belongs to.")
    }

    /// 413: the body has more bytes than the server accepts.
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        let hint = "Store large data outside the job and send a reference to it.";
        Self::new(413, "payload_too_large", format!("The body is larger than {limit} bytes."), hint)
            .with("limit_bytes", limit)
    }

    /// 401: no key, or a wrong one.
    #[must_use]
    pub fn unauthorized() -> Self {
        let hint = "Send one of the server's API keys in the header `Authorization: Bearer <key>`.";
        Self::new(401, "unauthorized", "The request carries no valid API key.", hint)
    }

    /// 503: the store failed; nothing was written.
    #[must_use]
    pub fn backend(message: impl Into<String>) -> Self {
        let hint =
            "Send the same request again in a moment; with an id of your own a repeated enqueue is safe.";
        Self { retryable: true, ..Self::new(503, "backend_error", message, hint) }
    }

    /// 500: Turnstone itself failed.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        let hint = "Look for the request id in the server's log.";
        Self { retryable: true, ..Self::new(500, "internal_error", message, hint) }
    }

    /// 400 `AGENT_INVALID_PARAMETER`: an `ext_agent_*` field, or a field of `meta` that concerns the agent, is wrong.
    #[must_use]
    pub fn agent_parameter(field: &str, why: impl AsRef<str>) -> Self {
        let kind = FailureKind::Validation;
        let hint = "Correct the field that the message names and send the job again.";
        let error =
            Self::new(400, kind.code(), format!("{field} {}", why.as_ref()), hint).with("field", field);
        Self { error_type: kind.ojs_type(), ..error }
    }

    /// Returns a failure of an agent job that is known before the job is stored (agent extension §3): 400 for a wrong
    /// parameter, else 422.
    #[must_use]
    pub fn agent(error: JobError) -> Self {
        let status = if error.kind == FailureKind::Validation { 400 } else { 422 };
        let hint = "Change the job's ext_agent_* fields, or the agent it names, and send the job again.";
        let mut details = error.details.clone();
        for (key, fact) in error.facts() {
            details.entry(key).or_insert(fact);
        }
        Self {
            error_type: error.kind.ojs_type(),
            details,
            ..Self::new(status, error.kind.code(), error.message, hint)
        }
    }

    /// Returns the body of the answer to a request.
    #[must_use]
    pub fn reply(&self, request_id: &str) -> ErrorReply {
        ErrorReply {
            error: ErrorBody {
                code: self.code.to_owned(),
                message: self.message.clone(),
                retryable: self.retryable,
                error_type: self.error_type.to_owned(),
                hint: self.hint.to_owned(),
                docs_url: self.docs_url(),
                details: *self.details.clone(),
                request_id: request_id.to_owned(),
            },
        }
    }
}

/// An error.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorReply {
    /// The error.
    pub error: ErrorBody,
}

/// The cause, the place, and the next step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// Stable; programs decide by it.
    #[schema(example = "not_found")]
    pub code: String,
    /// The cause and the place.
    pub message: String,
    /// True if the same request may succeed later without being changed.
    pub retryable: bool,
    /// The class of the error.
    #[serde(rename = "type")]
    pub error_type: String,
    /// The next step.
    pub hint: String,
    /// The address of the code's explanation.
    pub docs_url: String,
    /// Facts for programs, such as the field.
    pub details: Map<String, Value>,
    /// The request, as the server's log names it.
    pub request_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_shape_is_complete() {
        let body = json!(OjsError::not_found("job", "x").reply("req_1"));
        let error = body["error"].as_object().unwrap();
        let keys: Vec<&str> = error.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["code", "message", "retryable", "type", "hint", "docs_url", "details", "request_id"]
        );
        assert_eq!(error["retryable"], false);
        assert!(error["hint"].as_str().unwrap().len() > 10);
        assert!(error["docs_url"].as_str().unwrap().starts_with("https://"));
    }

    #[test]
    fn a_full_queue_says_how_full() {
        let error = OjsError::queue_full("mail", 10, 9);
        assert_eq!((error.status, error.code, error.retryable), (429, "QUEUE_FULL", true));
        assert_eq!(Value::Object(*error.details), json!({"queue": "mail", "depth": 10, "bound": 9}));
    }

    #[test]
    fn failures_known_in_advance_keep_their_code() {
        let error =
            OjsError::agent(JobError::new(FailureKind::DelegationDepth, "too deep").with("depth", 11));
        assert_eq!((error.status, error.code), (422, "AGENT_MAX_DELEGATION_DEPTH"));
        assert_eq!(error.error_type, "agent.delegation_depth");
        assert_eq!(error.details["depth"], 11);
    }
}
