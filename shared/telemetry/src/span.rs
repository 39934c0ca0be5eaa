//! Attributes that are added to a span after it was made. All of it costs nothing while no spans are sent.

use crate::otlp::{captures_content, exports_spans};
use crate::redact;
use opentelemetry::trace::{Span as _, Status};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanProcessor};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The longest text of an attribute, in bytes.
const LONGEST: usize = 32 * 1024;

/// The value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub enum Said {
    /// A text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// A whole number.
    Number(i64),
    /// A number.
    Decimal(f64),
    /// Nothing: the attribute is left out.
    Nothing,
}

impl From<&str> for Said {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Said {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<f64> for Said {
    fn from(number: f64) -> Self {
        Self::Decimal(number)
    }
}

impl<T: Into<Said>> From<Option<T>> for Said {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

impl Said {
    fn value(self) -> Option<Value> {
        Some(match self {
            Self::Text(text) => shortened(text).into(),
            Self::Texts(texts) => Value::Array(Array::String(
                texts.into_iter().map(|text| shortened(text).into()).collect::<Vec<StringValue>>(),
            )),
            Self::Number(number) => number.into(),
            Self::Decimal(number) => number.into(),
            Self::Nothing => return None,
        })
    }
}

/// Secrets are struck out before the cut, which could leave half of one.
fn shortened(mut text: String) -> String {
    if text.len() > LONGEST {
        text = redact(&text);
        let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// Attributes of a span and of every span that begins below it afterwards.
#[derive(Clone, Debug, Default)]
pub struct Common(Arc<Mutex<BTreeMap<&'static str, Value>>>);

impl Common {
    /// Sets an attribute, or removes it.
    pub fn say(&self, attribute: &'static str, value: impl Into<Said>) {
        if !exports_spans() {
            return;
        }
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match value.into().value() {
            Some(value) => said.insert(attribute, value),
            None => said.remove(attribute),
        };
    }
}

/// Adds the common attributes when a span begins.
#[derive(Debug)]
pub(crate) struct SaysCommon;

impl SpanProcessor for SaysCommon {
    fn on_start(&self, span: &mut opentelemetry_sdk::trace::Span, parent: &Context) {
        if let Some(Common(common)) = parent.get::<Common>() {
            let common = common.lock().unwrap_or_else(PoisonError::into_inner);
            span.set_attributes(common.iter().map(|(key, value)| KeyValue::new(*key, value.clone())));
        }
    }

    fn on_end(&self, _: SpanData) {}

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Sets an attribute of a span.
pub fn say(span: &Span, attribute: &'static str, value: impl Into<Said>) {
    if exports_spans()
        && let Some(value) = value.into().value()
    {
        span.set_attribute(attribute, value);
    }
}

/// Sets an attribute with text of a user, a model or a tool: only when such content may be captured.
pub fn say_content(span: &Span, attribute: &'static str, text: impl FnOnce() -> String) {
    if exports_spans() && captures_content() {
        say(span, attribute, text());
    }
}

/// Marks a span as failed, with the code of the error. The message may repeat text of a user or a tool, so it is added
/// only when such content may be captured.
pub fn fail(span: &Span, code: &str, message: &str) {
    if !exports_spans() {
        return;
    }
    span.set_attribute("error.type", code.to_owned());
    span.set_status(Status::error(code.to_owned()));
    let mut exception = vec![KeyValue::new("exception.type", code.to_owned())];
    if captures_content() {
        exception.push(KeyValue::new("exception.message", shortened(message.to_owned())));
    }
    span.add_event("exception", exception);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    #[test]
    fn a_secret_at_the_cut_is_struck_out() {
        let secret = Secret::given("half-of-me-stays-4711".to_owned());
        let text = format!("{}{}{}", "x".repeat(LONGEST - 10), secret.expose(), "y".repeat(100));
        let cut = shortened(text);
        assert!(cut.len() <= LONGEST && !cut.contains("half"), "{}", &cut[LONGEST - 20..]);
    }
}
