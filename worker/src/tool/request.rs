//! Requests that a document of Agent Spec describes itself: a `RemoteTool`, or an `ApiNode`.
//!
//! What may be reached is what `[tool_policy]` allows, and of that what the request's own `url_allow_list`
//! has.

use super::body_text::{self, BodyText};
use super::declared::Declared;
use super::outbound::error_codes;
use super::outbound::{self, excerpt, trace_headers};
use super::{Answer, Invocation, Tool, ToolError, Transport, within};
use crate::flow::machine::Values;
use crate::flow::{render, render_all, render_url, text};
use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::CallId;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::flaw::without_half_pairs;
use turnstone_specs::agent_spec::Property;
use turnstone_specs::agent_spec::model::Request;
use turnstone_telemetry::Secret;
use url::{Url, form_urlencoded};

/// The longest a request may take unless its retry policy says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest that all tries together may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Tries of a request without a retry policy.
const TRIES: u64 = 3;
/// The most bytes of an answer.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// The part of a failed answer that is repeated, in characters.
const EXCERPT: usize = 300;
/// Methods that may be sent twice.
const IDEMPOTENT: [&str; 5] = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"];

/// A request, as a tool.
pub struct RequestTool {
    spec: ToolSpec,
    request: Request,
    /// True when the answer is returned with its status, and read as JSON.
    whole: bool,
    declared: Arc<Declared>,
}

impl RequestTool {
    pub(crate) fn new(name: &str, request: &Request, whole: bool, declared: Arc<Declared>) -> Self {
        let method = request.http_method.to_ascii_uppercase();
        let spec = ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            idempotent: IDEMPOTENT.contains(&method.as_str()),
        };
        Self { spec, request: request.clone(), whole, declared }
    }

    fn refused(&self, why: impl std::fmt::Display) -> ToolError {
        ToolError::Refused(format!("request {}: {why}", self.spec.name))
    }

    /// Renders the request, and finds the client that may send it.
    fn rendered(&self, call_id: &CallId, inputs: &Values) -> Result<(Client, reqwest::Request), ToolError> {
        let mut url = Url::parse(&render_url(&self.request.url, inputs))
            .map_err(|error| self.refused(format!("its address is no URL: {error}")))?;
        for (name, value) in &self.request.query_params {
            url.query_pairs_mut().append_pair(&render(name, inputs), &text(&render_all(value, inputs)));
        }
        if let Some(list) = &self.request.url_allow_list
            && !list.iter().any(|allowed| is_below(&url, allowed))
        {
            return Err(self.refused("its address is not in `url_allow_list`"));
        }
        let client = self.declared.client_for(&url).map_err(|why| self.refused(why))?;
        let method = render(&self.request.http_method, inputs).to_ascii_uppercase();
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| self.refused("its `http_method` is no method of HTTP"))?;
        let headers = self.headers(inputs)?;
        let is_form = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.contains("x-www-form-urlencoded"));
        let mut builder = client.request(method, url).headers(trace_headers());
        builder = match render_all(&self.request.data, inputs) {
            Value::Null => builder,
            Value::Object(map) if map.is_empty() => builder,
            Value::String(body) if body.is_empty() => builder,
            Value::Object(map) if is_form => {
                let pairs = map.iter().map(|(name, value)| (name, text(value)));
                builder.body(form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish())
            }
            Value::String(body) => match serde_json::from_str::<Value>(&body) {
                Ok(json) if !is_form => builder.json(&json),
                _ => builder.body(body),
            },
            other => builder.json(&other),
        };
        let request = builder.headers(headers).header("idempotency-key", call_id.as_str()).build();
        Ok((client.clone(), request.map_err(|error| self.refused(outbound::describe(&error)))?))
    }

    fn headers(&self, inputs: &Values) -> Result<HeaderMap, ToolError> {
        let mut headers = HeaderMap::new();
        let secret = self.request.sensitive_headers.as_ref().and_then(|secret| secret.reveal());
        let given = self.request.headers.iter().map(|(name, value)| (name, value, false));
        let hidden = secret.and_then(Value::as_object).into_iter().flatten();
        for (name, value, is_secret) in given.chain(hidden.map(|(name, value)| (name, value, true))) {
            let value = text(&render_all(value, inputs));
            let value = if is_secret { Secret::given(value).expose().to_owned() } else { value };
            let name = HeaderName::try_from(render(name, inputs))
                .map_err(|_| self.refused("a name in `headers` is none of a header"))?;
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| self.refused(format!("the value of header `{name}` cannot be sent")))?;
            value.set_sensitive(is_secret);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    async fn send(&self, (client, request): (&Client, reqwest::Request)) -> Result<Tried, ToolError> {
        let lost = |error: &reqwest::Error| {
            let reported = format!("request {}: {}", self.spec.name, outbound::describe(error));
            if error.is_connect() { ToolError::Unreached(reported) } else { ToolError::Lost(reported) }
        };
        let response = client.execute(request).await.map_err(|error| lost(&error))?;
        let (status, wait_ms) = (response.status(), outbound::retry_after_ms(&response));
        let content_type = outbound::content_type(&response);
        let body = outbound::read_body(response, MOST_BYTES).await;
        let body = body.map_err(|error| ToolError::Final(format!("request {}: {error}", self.spec.name)))?;
        let BodyText { text: body, note } = body_text::decode(&content_type, body);
        Ok(Tried { status, wait_ms, body, note })
    }

    /// Returns how long to wait before the request is sent again; `None` when it is not.
    fn again(&self, tries: u64, tried: &Result<Tried, ToolError>) -> Option<Duration> {
        let Some(policy) = &self.request.retry_policy else {
            let is_bad = tried.as_ref().map_or_else(is_repeatable, |tried| !tried.status.is_success());
            return (is_bad && tries < TRIES).then_some(Duration::ZERO);
        };
        let covered = match tried {
            Ok(tried) if tried.status.is_success() => return None,
            Ok(tried) => {
                let body: Value = serde_json::from_str(&tried.body).unwrap_or_default();
                policy.covers(tried.status.as_u16(), &error_codes(&body))
            }
            Err(error) => is_repeatable(error),
        };
        if !covered || tries > policy.max_attempts {
            return None;
        }
        let requested = tried.as_ref().ok().and_then(|tried| tried.wait_ms).map(Duration::from_millis);
        let power = i32::try_from(tries.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = policy.initial_retry_delay * policy.backoff_factor.powi(power);
        let own = Duration::try_from_secs_f64(seconds.min(policy.max_retry_delay).max(0.0));
        Some(requested.unwrap_or(own.unwrap_or(Duration::ZERO)).min(Duration::from_secs(30)))
    }

    async fn sent(&self, call_id: &CallId, inputs: &Values) -> Result<Answer, ToolError> {
        let (client, request) = self.rendered(call_id, inputs)?;
        let own = self.request.retry_policy.as_ref().and_then(|policy| policy.request_timeout);
        let timeout = own.and_then(|own| Duration::try_from_secs_f64(own).ok()).unwrap_or(TIMEOUT);
        let mut tries = 0;
        let tried = loop {
            let copy = request.try_clone().ok_or_else(|| self.refused("its body cannot be sent"))?;
            let late = || format!("request {}: no answer", self.spec.name);
            let tried = within(timeout, self.send((&client, copy)), late).await;
            tries += 1;
            match self.again(tries, &tried) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => break tried?,
            }
        };
        let Tried { status, body, note, .. } = tried;
        if !status.is_success() {
            let reported = excerpt(&body, EXCERPT);
            let text =
                format!("request {}: answered with status {}: {reported}", self.spec.name, status.as_u16());
            return Err(ToolError::Final(text));
        }
        let output = match self.whole {
            false => Value::String(body),
            true => json!({"status": status.as_u16(), "body": body}),
        };
        Ok(Answer { notes: note.into_iter().collect(), ..Answer::from(output) })
    }
}

/// An answer.
struct Tried {
    status: StatusCode,
    wait_ms: Option<u64>,
    body: String,
    note: Option<String>,
}

/// Returns true when the error may not occur another time.
fn is_repeatable(error: &ToolError) -> bool {
    matches!(error, ToolError::Unreached(_) | ToolError::Lost(_) | ToolError::Timeout(_))
}

/// Returns true when a URL is at or below an allowed one: the same scheme, host and port, and a path that begins with
/// its path.
fn is_below(url: &Url, allowed: &str) -> bool {
    Url::parse(allowed)
        .is_ok_and(|allowed| url.origin() == allowed.origin() && url.path().starts_with(allowed.path()))
}

/// Returns the outputs of an `ApiNode` from the result of its request. They are members of the answer's JSON, its
/// status and its text. An output `response` that is no member is the whole answer.
pub fn outputs(declared: &[Property], value: Value) -> Values {
    let body = value["body"].as_str().unwrap_or_default();
    let json: Value = serde_json::from_str(&without_half_pairs(body)).unwrap_or_else(|_| body.into());
    let mut outputs = Values::new();
    for output in declared {
        let found = match output.title.as_str() {
            "http_status_code" => Some(value["status"].clone()),
            "http_response" => Some(body.into()),
            title => json.get(title).cloned().or_else(|| (title == "response").then(|| json.clone())),
        };
        outputs.extend(found.map(|found| (output.title.clone(), found)));
    }
    outputs
}

#[async_trait]
impl Tool for RequestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        PATIENCE
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError> {
        self.answer(invocation).await.map(|answer| answer.output)
    }

    async fn answer(&self, invocation: Invocation<'_>) -> Result<Answer, ToolError> {
        let nothing = Values::new();
        let inputs = invocation.input.as_object().unwrap_or(&nothing);
        let sent = self.sent(invocation.call_id, inputs);
        within(invocation.timeout, sent, || format!("request {} did not end", self.spec.name)).await
    }
}
