//! A collector for tests: OTLP over real HTTP, decoded with OpenTelemetry's own messages, and every byte
//! kept.

use crate::wait;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as wire;
use prost::Message;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The attributes of a span, a reading or a record.
pub type Attributes = BTreeMap<String, Value>;

/// A link of a span.
#[derive(Clone, Debug)]
pub struct Link {
    /// The other span's trace, in hex.
    pub trace: String,
    /// The other span, in hex.
    pub span: String,
    /// The attributes of the link.
    pub attributes: Attributes,
}

/// A span.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its name.
    pub name: String,
    /// Its trace, in hex.
    pub trace: String,
    /// Its id, in hex.
    pub id: String,
    /// The id of its parent; empty for a root.
    pub parent: String,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its links.
    pub links: Vec<Link>,
    /// Its events: names and attributes.
    pub events: Vec<(String, Attributes)>,
    /// The error, if it failed.
    pub error: Option<String>,
    /// The sender.
    pub resource: Attributes,
    /// The instrumentation scope: name and version.
    pub scope: (String, String),
}

/// One value of a metric.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The metric.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Its attributes.
    pub attributes: Attributes,
    /// The value of a counter; the number of values in a histogram.
    pub value: f64,
    /// The sender.
    pub resource: Attributes,
}

/// A log record.
#[derive(Clone, Debug)]
pub struct Record {
    /// The message.
    pub body: Value,
    /// The fields.
    pub attributes: Attributes,
    /// The trace it was written in, in hex; empty for none.
    pub trace: String,
    /// The span, in hex.
    pub span: String,
    /// INFO, WARN …
    pub severity: String,
}

/// The behaviour of the collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// It accepts everything.
    Takes,
    /// It never answers.
    Hangs,
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    headers: Vec<HeaderMap>,
    spans: Vec<Span>,
    readings: Vec<Reading>,
    records: Vec<Record>,
}

struct Shared {
    kept: Mutex<Kept>,
    manner: Manner,
    requests: watch::Sender<usize>,
}

/// The collector. It stops when it is dropped.
pub struct Collector {
    /// The value for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub url: String,
    shared: Arc<Shared>,
    _serving: AbortOnDropHandle<()>,
}

impl Collector {
    /// Starts a collector.
    pub async fn start(manner: Manner) -> Self {
        let shared = Arc::new(Shared { kept: Mutex::default(), manner, requests: watch::channel(0).0 });
        let app = Router::new().fallback(take).with_state(Arc::clone(&shared));
        let (url, serving) = crate::http::serve(app).await;
        Self { url, shared, _serving: serving }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns every span so far.
    pub fn spans(&self) -> Vec<Span> {
        self.kept().spans.clone()
    }

    /// Returns every value of a metric so far, oldest first.
    pub fn readings(&self) -> Vec<Reading> {
        self.kept().readings.clone()
    }

    /// Returns every log record so far.
    pub fn records(&self) -> Vec<Record> {
        self.kept().records.clone()
    }

    /// Returns the headers of every request so far.
    pub fn headers(&self) -> Vec<HeaderMap> {
        self.kept().headers.clone()
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> usize {
        *self.shared.requests.borrow()
    }

    /// Returns true if these words are anywhere in the received bytes.
    pub fn has_bytes(&self, words: &str) -> bool {
        self.kept().bytes.windows(words.len()).any(|window| window == words.as_bytes())
    }

    /// Waits until enough has arrived.
    ///
    /// # Panics
    /// When it is not within [`wait::PATIENCE`].
    pub async fn until(&self, what: &str, enough: impl Fn(&Self) -> bool) {
        let mut requests = self.shared.requests.subscribe();
        if wait::ends(wait::PATIENCE, requests.wait_for(|_| enough(self))).await.is_none() {
            let names: Vec<String> = self.spans().into_iter().map(|span| span.name).collect();
            let metrics: Vec<String> = self.readings().into_iter().map(|reading| reading.name).collect();
            panic!(
                "waited {:?} without success: {what}; spans {names:?}, metrics {metrics:?}",
                wait::PATIENCE
            );
        }
    }
}

async fn take(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    {
        let mut kept = shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes.extend_from_slice(&body);
        kept.headers.push(headers);
        match uri.path() {
            "/v1/traces" => kept.spans.extend(spans(&body)),
            "/v1/metrics" => kept.readings.extend(readings(&body)),
            "/v1/logs" => kept.records.extend(records(&body)),
            _ => return StatusCode::NOT_FOUND.into_response(),
        }
    }
    shared.requests.send_modify(|count| *count += 1);
    match shared.manner {
        Manner::Hangs => std::future::pending().await,
        // An empty message is an answer without complaints.
        Manner::Takes => ([("content-type", "application/x-protobuf")], Vec::<u8>::new()).into_response(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn value(value: Option<AnyValue>) -> Value {
    match value.and_then(|value| value.value) {
        Some(Any::StringValue(text)) => text.into(),
        Some(Any::BoolValue(flag)) => flag.into(),
        Some(Any::IntValue(number)) => number.into(),
        Some(Any::DoubleValue(number)) => number.into(),
        Some(Any::ArrayValue(list)) => list.values.into_iter().map(|item| self::value(Some(item))).collect(),
        Some(Any::KvlistValue(list)) => json!(attributes(list.values)),
        Some(Any::BytesValue(bytes)) => hex(&bytes).into(),
        _ => Value::Null,
    }
}

fn attributes(pairs: Vec<KeyValue>) -> Attributes {
    let count = pairs.len();
    let attributes: Attributes = pairs.into_iter().map(|pair| (pair.key, value(pair.value))).collect();
    assert_eq!(attributes.len(), count, "an attribute stands twice: {attributes:?}");
    attributes
}

fn of(resource: Option<Resource>) -> Attributes {
    attributes(resource.unwrap_or_default().attributes)
}

fn by(scope: Option<InstrumentationScope>) -> (String, String) {
    let scope = scope.unwrap_or_default();
    (scope.name, scope.version)
}

fn spans(body: &[u8]) -> Vec<Span> {
    let request = ExportTraceServiceRequest::decode(body).expect("spans");
    let mut all = Vec::new();
    for sent in request.resource_spans {
        let resource = of(sent.resource);
        for scoped in sent.scope_spans {
            let scope = by(scoped.scope);
            all.extend(scoped.spans.into_iter().map(|span| one(span, &resource, &scope)));
        }
    }
    all
}

fn one(span: wire::Span, resource: &Attributes, scope: &(String, String)) -> Span {
    let link = |link: wire::span::Link| Link {
        trace: hex(&link.trace_id),
        span: hex(&link.span_id),
        attributes: attributes(link.attributes),
    };
    let failed = span.status.filter(|status| status.code() == wire::status::StatusCode::Error);
    Span {
        name: span.name,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        attributes: attributes(span.attributes),
        links: span.links.into_iter().map(link).collect(),
        events: span.events.into_iter().map(|event| (event.name, attributes(event.attributes))).collect(),
        error: failed.map(|status| status.message),
        resource: resource.clone(),
        scope: scope.clone(),
    }
}

fn readings(body: &[u8]) -> Vec<Reading> {
    let request = ExportMetricsServiceRequest::decode(body).expect("metrics");
    let mut all = Vec::new();
    for sent in request.resource_metrics {
        let resource = of(sent.resource);
        for metric in sent.scope_metrics.into_iter().flat_map(|scoped| scoped.metrics) {
            let points: Vec<(Attributes, f64)> = match metric.data {
                Some(Data::Sum(sum)) => sum.data_points.into_iter().map(number).collect(),
                Some(Data::Gauge(gauge)) => gauge.data_points.into_iter().map(number).collect(),
                Some(Data::Histogram(histogram)) => {
                    let points = histogram.data_points.into_iter();
                    points.map(|point| (attributes(point.attributes), float(point.count))).collect()
                }
                _ => Vec::new(),
            };
            all.extend(points.into_iter().map(|(attributes, value)| Reading {
                name: metric.name.clone(),
                unit: metric.unit.clone(),
                attributes,
                value,
                resource: resource.clone(),
            }));
        }
    }
    all
}

fn number(point: opentelemetry_proto::tonic::metrics::v1::NumberDataPoint) -> (Attributes, f64) {
    let value = match point.value {
        Some(number_data_point::Value::AsDouble(number)) => number,
        Some(number_data_point::Value::AsInt(number)) => float(number.unsigned_abs()),
        None => 0.0,
    };
    (attributes(point.attributes), value)
}

/// Counts of tests are small.
fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("a small count"))
}

fn records(body: &[u8]) -> Vec<Record> {
    let request = ExportLogsServiceRequest::decode(body).expect("log records");
    let scoped = request.resource_logs.into_iter().flat_map(|sent| sent.scope_logs);
    let records = scoped.flat_map(|scoped| scoped.log_records);
    records
        .map(|record| Record {
            body: value(record.body),
            attributes: attributes(record.attributes),
            trace: hex(&record.trace_id),
            span: hex(&record.span_id),
            severity: record.severity_text,
        })
        .collect()
}
