//! The last gate before telemetry leaves: secrets are struck out of spans, and a collector that no longer takes spans, metrics or
//! log records is logged once.

use crate::redact;
use opentelemetry::trace::Status;
use opentelemetry::{Array, KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The state of the collector. All exporters of a process share it, so that an unreachable collector is logged once and
/// not once for each of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refused(Arc<Mutex<BTreeSet<&'static str>>>);

impl Refused {
    fn note(&self, what: &'static str, sent: &OTelSdkResult) {
        let turns = {
            let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match sent {
                Ok(()) => refused.remove(what) && refused.is_empty(),
                Err(_) => refused.insert(what) && refused.len() == 1,
            }
        };
        match sent {
            Ok(()) if turns => tracing::info!("the telemetry collector takes everything again"),
            Err(error) if turns => {
                let error = redact(&error.to_string());
                tracing::warn!(
                    error,
                    what,
                    "the telemetry collector does not take what is sent; it is dropped until the collector does"
                );
            }
            _ => {}
        }
    }
}

/// An exporter behind the gate.
#[derive(Debug)]
pub(crate) struct Watched<E> {
    exporter: E,
    /// The name of its signal, for the log.
    what: &'static str,
    refused: Refused,
}

impl<E> Watched<E> {
    pub(crate) fn new(exporter: E, what: &'static str, refused: &Refused) -> Self {
        Self { exporter, what, refused: refused.clone() }
    }

    fn note_outcome(&self, sent: &OTelSdkResult) {
        self.refused.note(self.what, sent);
    }
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter_mut().for_each(strike);
        let sent = self.exporter.export(batch).await;
        self.note_outcome(&sent);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: LogExporter> LogExporter for Watched<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let sent = self.exporter.export(batch).await;
        self.note_outcome(&sent);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Watched<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let sent = self.exporter.export(metrics).await;
        self.note_outcome(&sent);
        sent
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

/// Strikes every known secret out of a span, and keeps the last value of each repeated attribute.
fn strike(span: &mut SpanData) {
    let mut met = BTreeSet::new();
    span.attributes.reverse();
    span.attributes.retain(|attribute| met.insert(attribute.key.clone()));
    strike_all(&mut span.attributes);
    for event in &mut span.events.events {
        strike_all(&mut event.attributes);
    }
    for link in &mut span.links.links {
        strike_all(&mut link.attributes);
    }
    if let Status::Error { description } = &mut span.status {
        *description = redact(description).into();
    }
}

fn strike_all(attributes: &mut [KeyValue]) {
    for attribute in attributes {
        match &mut attribute.value {
            Value::String(text) => *text = redact(text.as_str()).into(),
            Value::Array(Array::String(texts)) => {
                for text in texts {
                    *text = redact(text.as_str()).into();
                }
            }
            _ => {}
        }
    }
}
