//! Log lines as OTLP log records: the same lines as on standard error, with the trace and the span they were written in.

use crate::redact;
use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, LoggerProvider as _, Severity};
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use std::fmt::Debug;
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Exports log lines.
pub(crate) struct LogRecords {
    logger: SdkLogger,
}

impl LogRecords {
    pub(crate) fn new(provider: &SdkLoggerProvider) -> Self {
        Self { logger: provider.logger_with_scope(super::scope()) }
    }
}

impl<S: Subscriber> Layer<S> for LogRecords {
    #[expect(
        clippy::disallowed_methods,
        reason = "the time of a log record is that of this machine, as on standard error"
    )]
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut record = self.logger.create_log_record();
        record.set_target(metadata.target().to_owned());
        record.set_timestamp(SystemTime::now());
        let (severity, text) = severity(*metadata.level());
        record.set_severity_number(severity);
        record.set_severity_text(text);
        let mut said = EventFields::default();
        event.record(&mut said);
        record.set_body(said.message.into());
        record.add_attributes(said.fields);
        self.logger.emit(record);
    }
}

fn severity(level: Level) -> (Severity, &'static str) {
    match level {
        Level::ERROR => (Severity::Error, "ERROR"),
        Level::WARN => (Severity::Warn, "WARN"),
        Level::INFO => (Severity::Info, "INFO"),
        Level::DEBUG => (Severity::Debug, "DEBUG"),
        Level::TRACE => (Severity::Trace, "TRACE"),
    }
}

/// The fields of an event, with every known secret struck out.
#[derive(Default)]
struct EventFields {
    message: String,
    fields: Vec<(&'static str, AnyValue)>,
}

impl EventFields {
    fn say(&mut self, field: &Field, text: &str) {
        let text = redact(text);
        match field.name() {
            "message" => self.message = text,
            name => self.fields.push((name, text.into())),
        }
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.say(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.say(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.fields.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), value.into()));
    }
}
