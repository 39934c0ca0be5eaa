//! Telemetry that leaves the process: OTLP over HTTP. The `OTEL_*` variables of the OpenTelemetry specification switch
//! it on; without them it is off.
//!
//! Everything goes through bounded queues with threads of their own. An unreachable or silent collector costs
//! telemetry, and never a turn.

mod export;
mod log_records;
mod settings;

pub(crate) use log_records::LogRecords;
pub use settings::captures_content;
pub(crate) use settings::{Settings, headers, variable};

use crate::metrics;
use crate::span::SaysCommon;
pub(crate) use export::{Refused, Watched};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{
    LogExporter, MetricExporter, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::Duration;

/// The instrumentation scope of spans and metrics, as the semantic conventions name it.
const SCOPE: &str = "ossa-agent";
/// Their version.
const SCOPE_VERSION: &str = "0.2.9";

/// The service that sends telemetry.
#[derive(Clone, Debug)]
pub struct Service {
    /// `service.name`, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` say another.
    pub name: &'static str,
    /// `service.version`.
    pub version: &'static str,
    /// `service.instance.id`: unique among running processes.
    pub instance: String,
}

/// The started providers, to be shut down once.
static STARTED: OnceLock<Providers> = OnceLock::new();

struct Providers {
    spans: SdkTracerProvider,
    logs: Option<SdkLoggerProvider>,
    exports_spans: bool,
}

/// The parts of the log besides lines.
pub(crate) struct Started {
    /// Makes spans.
    pub(crate) tracer: SdkTracer,
    /// Sends log records.
    pub(crate) logs: Option<SdkLoggerProvider>,
    /// Problems, in sentences for the log.
    pub(crate) problems: Vec<String>,
}

/// Starts the signals that the variables ask for. Spans always have ids, for the log; they are kept and sent only with
/// an endpoint.
pub(crate) fn start(service: &Service) -> Started {
    let settings = Settings::of_process();
    let mut problems = settings.problems.clone();
    let resource = resource(service);
    let mut attempt = |wanted: bool, what: &str, made: &mut dyn FnMut() -> Result<(), String>| {
        if wanted && let Err(problem) = made() {
            problems.push(format!("{what} are not sent by OTLP: {problem}"));
        }
    };
    let (mut spans, mut logs, mut readings) = (None, None, None);
    attempt(settings.spans, "spans", &mut || {
        let http = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        let http = http.with_headers(headers("TRACES"));
        spans = Some(http.build().map_err(|error| error.to_string())?);
        Ok(())
    });
    attempt(settings.logs, "log records", &mut || {
        let http = LogExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        let http = http.with_headers(headers("LOGS"));
        logs = Some(http.build().map_err(|error| error.to_string())?);
        Ok(())
    });
    attempt(settings.metrics, "metrics", &mut || {
        let http = MetricExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        let http = http.with_headers(headers("METRICS"));
        readings = Some(http.build().map_err(|error| error.to_string())?);
        Ok(())
    });
    let exports_spans = spans.is_some();
    let refused = Refused::default();
    let builder = SdkTracerProvider::builder().with_resource(resource.clone());
    let spans = match spans {
        Some(exporter) => builder
            .with_span_processor(SaysCommon)
            .with_batch_exporter(Watched::new(exporter, "spans", &refused))
            .build(),
        None => builder.with_sampler(Sampler::AlwaysOff).build(),
    };
    let logs = logs.map(|exporter| {
        SdkLoggerProvider::builder()
            .with_resource(resource.clone())
            .with_batch_exporter(Watched::new(exporter, "log records", &refused))
            .build()
    });
    metrics::start(resource, readings.map(|exporter| Watched::new(exporter, "metrics", &refused)));
    let tracer = spans.tracer_with_scope(scope());
    crate::propagation::install(&settings.propagators);
    let providers = Providers { spans, logs: logs.clone(), exports_spans };
    if STARTED.set(providers).is_err() {
        problems.push("telemetry was started twice; the first start stands".to_owned());
    }
    Started { tracer, logs, problems }
}

/// Returns true if spans of this process are sent to a collector.
#[must_use]
pub fn exports_spans() -> bool {
    STARTED.get().is_some_and(|started| started.exports_spans)
}

/// Sends the rest, for at most `patience`, and ends. Call it once, when no telemetry is made any more and outside of
/// any asynchronous runtime.
pub fn shut_down(patience: Duration) {
    let Some(Providers { spans, logs, .. }) = STARTED.get() else { return };
    let (reported, ended) = mpsc::channel();
    let end = |part: Box<dyn FnOnce() -> OTelSdkResult + Send>| {
        let reported = reported.clone();
        std::thread::spawn(move || {
            // An unreachable collector has been logged already.
            let _ = part();
            let _ = reported.send(());
        });
    };
    let (spans, logs) = (spans.clone(), logs.clone());
    end(Box::new(move || spans.shutdown_with_timeout(patience)));
    end(Box::new(move || logs.map_or(Ok(()), |logs| logs.shutdown_with_timeout(patience))));
    end(Box::new(move || metrics::shut_down(patience)));
    drop(reported);
    // Each part has its share of the time; a part that exceeds it is abandoned.
    let parts = 3;
    for _ in 0..parts {
        if ended.recv_timeout(patience).is_err() {
            return;
        }
    }
}

pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(SCOPE).with_version(SCOPE_VERSION).build()
}

/// Returns the resource of all telemetry of this process: attributes of the variables first, then its own.
fn resource(service: &Service) -> Resource {
    let given = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let says = |key: &str| given.split(',').any(|pair| pair.split('=').next().map(str::trim) == Some(key));
    let named = says("service.name") || variable("OTEL_SERVICE_NAME").is_some();
    let own = [
        ("service.name", service.name.to_owned(), named),
        ("service.version", service.version.to_owned(), says("service.version")),
        ("service.instance.id", service.instance.clone(), says("service.instance.id")),
    ];
    let own = own.into_iter().filter(|(_, _, given)| !given);
    Resource::builder().with_attributes(own.map(|(key, value, _)| KeyValue::new(key, value))).build()
}
