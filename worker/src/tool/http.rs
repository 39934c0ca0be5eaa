//! Tools behind HTTP: one request per call, with the call's id as its `Idempotency-Key`.

use crate::tool::address_guard::{check_form, check_url};
use crate::tool::body_text::{self, BodyText};
use crate::tool::config::ToolConfig;
use crate::tool::files;
use crate::tool::header::{check_headers, resolve_headers};
use crate::tool::outbound::{self, BodyError, excerpt, trace_headers};
use crate::tool::url_template::UrlTemplate;
use crate::tool::{Answer, Invocation, Tool, ToolError, Transport, within};
use async_trait::async_trait;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Request, Response};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::time::Duration;
use tracing::{Instrument, Span};
use turnstone_domain::CallId;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::agent::errors::Breaker;
use turnstone_domain::flaw::without_half_pairs;
use turnstone_domain::json;
use turnstone_domain::schema::Schema;
use turnstone_domain::schema::{MAX_VALUE_DEPTH, deeper_than};
use turnstone_telemetry::{names, redact, span};
use url::Url;

/// The most characters of a failed answer in an error.
const EXCERPT: usize = 300;

/// The text before the status of a failed answer.
pub const STATUS: &str = " answered with status ";

/// A tool that is called over HTTP.
#[derive(Debug)]
pub struct HttpTool {
    spec: ToolSpec,
    config: ToolConfig,
    url: UrlTemplate,
    client: Client,
}

impl HttpTool {
    /// Makes a tool from its configuration. `client` is behind the address guard unless
    /// `config.allow_private`.
    ///
    /// # Errors
    /// A sentence that names the key of the configuration that is wrong.
    pub fn new(name: &str, config: ToolConfig, client: Client) -> Result<Self, String> {
        let input_schema = config.input_schema.to_value()?;
        Schema::compile(&input_schema).map_err(|problem| format!("input_schema: {problem}"))?;
        let url = UrlTemplate::parse(&config.url).map_err(|problem| format!("url: {problem}"))?;
        let look = if config.allow_private { check_form } else { check_url };
        look(url.base()).map_err(|problem| format!("url: {problem}"))?;
        for argument in url.arguments() {
            if !is_required(&input_schema, argument) {
                return Err(format!(
                    "url: {{{argument}}} is in the path but not among the required properties of input_schema"
                ));
            }
        }
        check_headers(&config.headers)?;
        if config.timeout_ms == 0 || config.max_response_bytes == 0 {
            return Err("timeout_ms and max_response_bytes must be above 0".to_owned());
        }
        config.breaker.map_or(Ok(()), |breaker| breaker.check())?;
        if config.read_only == Some(true) && config.idempotent == Some(false) {
            return Err(
                "read_only: a tool that only reads is idempotent; remove `idempotent = false`".to_owned()
            );
        }
        let spec = ToolSpec {
            name: name.to_owned(),
            description: config.description.clone(),
            input_schema,
            idempotent: config.is_idempotent(),
        };
        Ok(Self { spec, config, url, client })
    }

    fn request(&self, invocation: &Invocation<'_>) -> Result<Request, ToolError> {
        let refused = |problem: String| ToolError::Refused(format!("tool {}: {problem}", self.spec.name));
        let (mut arguments, other) = match invocation.input {
            Value::Object(map) => (map.clone(), None),
            other => (Map::new(), Some(other)),
        };
        let mut url = self.url.fill(&mut arguments).map_err(refused)?;
        let look = if self.config.allow_private { check_form } else { check_url };
        look(&url).map_err(refused)?;
        if !self.config.method.has_body() {
            if other.is_some() {
                return Err(refused(
                    "the arguments must be an object, since they go into the query".to_owned(),
                ));
            }
            add_query(&mut url, &arguments);
        }
        let mut headers = resolve_headers(&self.config.headers).map_err(refused)?;
        invocation.identity.put_into(&mut headers);
        let mut request = self.client.request(self.config.method.to_http(), url);
        if self.config.method.has_body() {
            request = match other {
                Some(value) => request.json(value),
                None => request.json(&arguments),
            };
        }
        request
            .headers(trace_headers())
            .headers(headers)
            .header("idempotency-key", invocation.call_id.as_str())
            .build()
            .map_err(|error| refused(outbound::describe(&error)))
    }

    async fn send(&self, request: Request, call_id: &CallId) -> Result<Answer, ToolError> {
        let response = self.client.execute(request).await.map_err(|error| lost(&self.spec.name, &error))?;
        let status = response.status();
        span::say(&Span::current(), names::HTTP_STATUS, i64::from(status.as_u16()));
        let (defers, wait_ms) =
            (response.headers().contains_key(RETRY_AFTER), outbound::retry_after_ms(&response));
        if !status.is_success() {
            let content_type = outbound::content_type(&response);
            let (reported, is_answer) = match outbound::read_start(response, 4 * EXCERPT).await {
                Ok((body, whole)) => {
                    let BodyText { text, .. } = body_text::decode(&content_type, body);
                    let is_answer = is_json(&outbound::essence(&content_type), &text, whole);
                    (excerpt(&text, EXCERPT), is_answer)
                }
                Err(error) => (error.to_string(), false),
            };
            let hint = if status.is_redirection() { " (redirects are not followed)" } else { "" };
            let code = status.as_u16();
            let reported = if reported.is_empty() { reported } else { format!(": {reported}") };
            let text = format!("tool {}:{STATUS}{code}{hint}{reported}", self.spec.name);
            return Err(match code {
                429 => ToolError::Busy(text, wait_ms),
                503 if defers => ToolError::Busy(text, wait_ms),
                // A gateway does not know the outcome of the request behind it.
                408 | 502 | 504 | 520..=524 => ToolError::Lost(text),
                // The same request would get the same answer.
                300..=407 | 409..=424 | 426..=499 => ToolError::Final(text),
                425 => ToolError::Answered(text),
                // The tool itself answers in JSON. A proxy before it, or a broken server, answers with a page
                // or nothing.
                _ if is_answer => ToolError::Answered(text),
                _ => ToolError::Failed(text),
            });
        }
        // The call ran; another request would run it again, and its answer would be unreadable as well.
        let unreadable = |problem: String| ToolError::Final(format!("tool {}: {problem}", self.spec.name));
        let name = name_of(&response);
        let content_type = outbound::content_type(&response);
        let media_type = outbound::essence(&content_type);
        let body = read_body(response, self.config.max_response_bytes).await.map_err(&unreadable)?;
        if is_body_text(&content_type, &body) {
            let BodyText { text, note } = body_text::decode(&content_type, body);
            let mut answer = read_text(&media_type, &text).map_err(unreadable)?;
            answer.notes.extend(note);
            return Ok(answer);
        }
        let named = (self.spec.name.as_str(), name.as_deref());
        let file = files::given(call_id, 0, named, &media_type, body).map_err(unreadable)?;
        Ok(Answer { output: files::as_json(&file), artifacts: vec![file], notes: Vec::new() })
    }
}

#[async_trait]
impl Tool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.config.timeout_ms)
    }

    fn breaker(&self) -> Option<Breaker> {
        self.config.breaker.map(|breaker| breaker.over(Breaker::default()))
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    fn destination(&self) -> Option<&Url> {
        Some(self.url.base())
    }

    fn takes_credentials(&self) -> bool {
        true
    }

    fn is_read_only(&self) -> bool {
        self.config.is_read_only()
    }

    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError> {
        self.answer(invocation).await.map(|answer| answer.output)
    }

    async fn answer(&self, invocation: Invocation<'_>) -> Result<Answer, ToolError> {
        let span = tracing::info_span!(names::HTTP_REQUEST, otel.kind = "client");
        let request = span.in_scope(|| self.request(&invocation))?;
        span::say(&span, names::HTTP_METHOD, request.method().as_str());
        span::say(&span, names::SERVER_ADDRESS, request.url().host_str());
        let sending = self.send(request, invocation.call_id).instrument(span);
        within(invocation.timeout, sending, || format!("tool {} did not answer", self.spec.name)).await
    }
}

/// Returns the error of a request without an answer. Only a failed connection proves that nothing arrived.
fn lost(tool: &str, error: &reqwest::Error) -> ToolError {
    let text = format!("tool {tool}: {}", outbound::describe(error));
    if error.is_connect() || error.is_builder() { ToolError::Unreached(text) } else { ToolError::Lost(text) }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|required| required.iter().any(|known| known == name))
}

/// Adds arguments to the query: plain values unchanged, a list as a repeated name, an object as JSON. Null is
/// omitted.
fn add_query(url: &mut Url, arguments: &Map<String, Value>) {
    if arguments.values().all(Value::is_null) {
        return;
    }
    let mut query = url.query_pairs_mut();
    for (name, value) in arguments {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            match value {
                Value::Null => {}
                Value::String(text) => drop(query.append_pair(name, text)),
                other => drop(query.append_pair(name, &other.to_string())),
            }
        }
    }
}

/// Returns the name in an answer's header, or the last part of its address.
fn name_of(response: &Response) -> Option<String> {
    let header =
        response.headers().get(reqwest::header::CONTENT_DISPOSITION).and_then(|value| value.to_str().ok());
    let given =
        header.and_then(|text| text.split(';').find_map(|part| part.trim().strip_prefix("filename=")));
    let given = given.map(|name| name.trim_matches('"').to_owned());
    given.or_else(|| files::last_segment(response.url().as_str()).map(str::to_owned))
}

/// Returns true if an answer of this type is a file, even when its bytes are valid text.
fn is_file(media_type: &str) -> bool {
    let is_medium = ["image/", "audio/", "video/"].iter().any(|kind| media_type.starts_with(kind));
    (is_medium && !media_type.ends_with("+xml")) || media_type == "application/pdf"
}

/// Returns true if a body is text, and no file: its type or charset says so, or its bytes are UTF-8.
fn is_body_text(content_type: &str, body: &[u8]) -> bool {
    let media_type = outbound::essence(content_type);
    if is_file(&media_type) || body_text::is_binary(content_type, body) {
        return false;
    }
    let says_text = is_text(&media_type) || body_text::declared(content_type).is_some();
    says_text || std::str::from_utf8(body).is_ok()
}

/// Returns true if an answer of this type must be text.
fn is_text(media_type: &str) -> bool {
    media_type.is_empty() || media_type.starts_with("text/") || says_json(media_type)
}

/// Returns true if an answer of this type must be JSON.
fn says_json(media_type: &str) -> bool {
    media_type == "application/json" || media_type.ends_with("+json")
}

/// Returns true if a body is JSON. For a longer body with only its start read, the media type decides.
fn is_json(media_type: &str, start: &str, whole: bool) -> bool {
    says_json(media_type) && (!whole || serde_json::from_str::<IgnoredAny>(start).is_ok())
}

async fn read_body(response: Response, limit: usize) -> Result<Vec<u8>, String> {
    outbound::read_body(response, limit).await.map_err(|error| match error {
        BodyError::TooLarge(_) => format!("{error}; raise max_response_bytes if that is wanted"),
        BodyError::Lost(_) => error.to_string(),
    })
}

/// Returns an answer as the tool's output: JSON by its media type, else text; null if it is empty. JSON with numbers that
/// JSON does not have is kept as text.
fn read_text(media_type: &str, text: &str) -> Result<Answer, String> {
    if text.is_empty() {
        return Ok(Value::Null.into());
    }
    // A tool that echoes our credentials must not carry them into the conversation.
    let text = redact(text);
    let whole = without_half_pairs(&text);
    if says_json(media_type) {
        let (value, has_no_numbers) = match json::unambiguous(&whole) {
            Ok(value) => (value, false),
            Err(why) => {
                let read = json::unambiguous(&body_text::with_numbers_as_texts(&whole));
                let value = read.map_err(|_| {
                    format!("answered with {media_type} that is not JSON, or not unambiguous: {why}")
                })?;
                (value, true)
            }
        };
        if deeper_than(&value, MAX_VALUE_DEPTH) {
            return Err(format!("answered with JSON that nests deeper than {MAX_VALUE_DEPTH} levels"));
        }
        if has_no_numbers {
            let note = format!("{}; it is kept as text", body_text::HAS_NO_NUMBERS);
            return Ok(Answer { notes: vec![note], ..Answer::from(Value::String(text)) });
        }
        return Ok(value.into());
    }
    if media_type.is_empty()
        && let Ok(value) = json::unambiguous(&whole)
        && !deeper_than(&value, MAX_VALUE_DEPTH)
    {
        return Ok(value.into());
    }
    Ok(Value::String(text).into())
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
