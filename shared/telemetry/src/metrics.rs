//! The metrics of this process: OSSA's eight and OpenTelemetry's two for model calls, counted once and exported by OTLP
//! and to Prometheus.
//!
//! Labels are bounded: names that users choose are kept up to a number of different ones, and exported as `_other`
//! beyond it. No label is an id of an engagement, a turn or a worker (RS-33).

use crate::names;
use crate::otlp::{Watched, scope};
use opentelemetry::metrics::{Counter, Histogram, MeterProvider as _};
use opentelemetry::{KeyValue, StringValue};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use prometheus::Registry;
use prometheus::proto::MetricFamily;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The most different values of a label that users can choose; further ones are exported as [`OTHER`].
pub const MOST_VALUES: usize = 100;
/// The replacement for values beyond [`MOST_VALUES`].
pub const OTHER: &str = "_other";
/// The longest value of a label, in characters.
const LONGEST: usize = 100;

/// Bounds of the buckets of times, in seconds: from a quick answer of a model to ten minutes of thought.
const SECONDS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
/// A count above this in one call is ignored: a provider could make the sums overflow.
const MOST_TOKENS: u64 = 1 << 32;
/// Bounds of the buckets of tokens.
const TOKENS: [f64; 12] =
    [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0];

static METERS: OnceLock<Meters> = OnceLock::new();

struct Meters {
    provider: SdkMeterProvider,
    registry: Registry,
    invocations: Counter<u64>,
    turns: Counter<u64>,
    errors: Counter<u64>,
    tokens_input: Counter<u64>,
    tokens_output: Counter<u64>,
    tokens_above: Counter<u64>,
    tool_calls: Counter<u64>,
    tool_errors: Counter<u64>,
    latency: Histogram<f64>,
    call_duration: Histogram<f64>,
    call_tokens: Histogram<u64>,
}

/// Starts counting, with readings sent by OTLP when there is an exporter.
pub(crate) fn start(resource: Resource, exporter: Option<Watched<MetricExporter>>) {
    METERS.get_or_init(|| Meters::new(Some(resource), exporter));
}

fn meters() -> &'static Meters {
    METERS.get_or_init(|| Meters::new(None, None))
}

pub(crate) fn shut_down(patience: Duration) -> OTelSdkResult {
    METERS.get().map_or(Ok(()), |meters| meters.provider.shutdown_with_timeout(patience))
}

impl Meters {
    fn new(resource: Option<Resource>, exporter: Option<Watched<MetricExporter>>) -> Self {
        let registry = Registry::new();
        let mut builder = SdkMeterProvider::builder();
        if let Some(resource) = resource {
            builder = builder.with_resource(resource);
        }
        let scraped = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .without_target_info()
            .scope_info_enabled(false)
            .build();
        match scraped {
            Ok(scraped) => builder = builder.with_reader(scraped),
            Err(error) => tracing::error!(%error, "agents are not counted for /metrics"),
        }
        if let Some(exporter) = exporter {
            builder = builder.with_reader(PeriodicReader::builder(exporter).build());
        }
        let provider = builder.build();
        let meter = provider.meter_with_scope(scope());
        let counter = |name: &'static str| {
            meter.u64_counter(name).with_unit("1").with_description(names::meaning(name)).build()
        };
        let seconds = SECONDS.to_vec();
        Self {
            invocations: counter(names::INVOCATIONS),
            turns: counter(names::TURNS),
            errors: counter(names::ERRORS),
            tokens_input: counter(names::TOKENS_INPUT),
            tokens_output: counter(names::TOKENS_OUTPUT),
            tokens_above: counter(names::TOKENS_ABOVE),
            tool_calls: counter(names::TOOL_CALLS),
            tool_errors: counter(names::TOOL_ERRORS),
            latency: meter
                .f64_histogram(names::LATENCY)
                .with_unit("ms")
                .with_description(names::meaning(names::LATENCY))
                .with_boundaries(seconds.iter().map(|seconds| seconds * 1000.0).collect())
                .build(),
            call_duration: meter
                .f64_histogram(names::CALL_DURATION)
                .with_unit("s")
                .with_description(names::meaning(names::CALL_DURATION))
                .with_boundaries(seconds)
                .build(),
            call_tokens: meter
                .u64_histogram(names::CALL_TOKENS)
                .with_unit("{token}")
                .with_description(names::meaning(names::CALL_TOKENS))
                .with_boundaries(TOKENS.to_vec())
                .build(),
            provider,
            registry,
        }
    }
}

/// Returns the counts so far, for Prometheus.
#[must_use]
pub fn gathered() -> Vec<MetricFamily> {
    let mut families = meters().registry.gather();
    for family in &mut families {
        // OSSA counts in the unit `1`, which Prometheus would call a ratio.
        if let Some(name) = family.name().strip_suffix("_ratio_total") {
            let name = format!("{name}_total");
            family.set_name(name);
        }
    }
    families
}

/// The values of one label so far. All counters share them.
struct Met(Mutex<BTreeSet<Arc<str>>>);

static AGENTS: Met = Met(Mutex::new(BTreeSet::new()));
static VERSIONS: Met = Met(Mutex::new(BTreeSet::new()));
static MODELS: Met = Met(Mutex::new(BTreeSet::new()));
static TOOLS: Met = Met(Mutex::new(BTreeSet::new()));

impl Met {
    /// Returns the value, or [`OTHER`] when there are too many.
    fn bounded(&self, value: &str) -> StringValue {
        let value = value.char_indices().nth(LONGEST).map_or(value, |(end, _)| &value[..end]);
        let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = met.get(value) {
            return Arc::clone(known).into();
        }
        if met.len() >= MOST_VALUES {
            return OTHER.into();
        }
        let new: Arc<str> = value.into();
        met.insert(Arc::clone(&new));
        new.into()
    }
}

/// The labels of an agent, with bounded names.
#[derive(Clone, Debug)]
pub struct Counted {
    labels: [KeyValue; 3],
}

impl Counted {
    /// For this agent, and the model that it asks for; an empty model is the server's own.
    #[must_use]
    pub fn of(agent: &str, version: &str, model: &str) -> Self {
        let labels = [
            KeyValue::new(names::AGENT_ID, AGENTS.bounded(agent)),
            KeyValue::new(names::AGENT_VERSION, VERSIONS.bounded(version)),
            KeyValue::new(names::REQUEST_MODEL, MODELS.bounded(model)),
        ];
        Self { labels }
    }

    fn with(&self, more: KeyValue) -> Vec<KeyValue> {
        self.labels.iter().cloned().chain([more]).collect()
    }

    /// A claimed job began to run.
    pub fn invoked(&self) {
        meters().invocations.add(1, &self.labels);
    }

    /// A turn is complete, after this time in this process.
    pub fn turned(&self, took: Duration) {
        meters().turns.add(1, &self.labels);
        meters().latency.record(took.as_secs_f64() * 1000.0, &self.labels);
    }

    /// An attempt failed with this code.
    pub fn failed(&self, code: &'static str) {
        meters().errors.add(1, &self.with(KeyValue::new(names::ERROR_TYPE, code)));
    }

    /// A tool was called; with the code of its failure, if it failed.
    pub fn called(&self, tool: &str, failed: Option<&str>) {
        let labels = self.with(KeyValue::new(names::TOOL_NAME, TOOLS.bounded(tool)));
        meters().tool_calls.add(1, &labels);
        if failed.is_some() {
            meters().tool_errors.add(1, &labels);
        }
    }

    /// An answer used so many tokens above the reservation of its call; a negative number is none.
    pub fn exceeded(&self, provider: &str, tokens: i64) {
        if let Ok(tokens @ 1..) = u64::try_from(tokens) {
            let [_, provider, model] = self.call(provider);
            meters().tokens_above.add(tokens.min(MOST_TOKENS), &[provider, model]);
        }
    }

    /// This usage was booked for the answer of a model.
    pub fn used(&self, provider: &str, input: i64, output: i64) {
        let whole = |tokens: i64| u64::try_from(tokens).unwrap_or(0).min(MOST_TOKENS);
        meters().tokens_input.add(whole(input), &self.labels);
        meters().tokens_output.add(whole(output), &self.labels);
        let [operation, provider, model] = self.call(provider);
        let mut labels = [operation, provider, model, KeyValue::new(names::TOKEN_TYPE, "input")];
        meters().call_tokens.record(whole(input), &labels);
        labels[3] = KeyValue::new(names::TOKEN_TYPE, "output");
        meters().call_tokens.record(whole(output), &labels);
    }

    /// A call to a model ended after this time; with the kind of the error, if it failed.
    pub fn asked(&self, provider: &str, took: Duration, failed: Option<&'static str>) {
        let (call, seconds) = (self.call(provider), took.as_secs_f64());
        match failed {
            None => meters().call_duration.record(seconds, &call),
            Some(kind) => {
                let [operation, provider, model] = call;
                let kind = KeyValue::new(names::ERROR_TYPE, kind);
                meters().call_duration.record(seconds, &[operation, provider, model, kind]);
            }
        }
    }

    fn call(&self, provider: &str) -> [KeyValue; 3] {
        let [_, _, model] = &self.labels;
        // Providers are named by the configuration, so their number is bounded.
        let provider = KeyValue::new(names::PROVIDER, provider.to_owned());
        [KeyValue::new(names::OPERATION, "chat"), provider, model.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RS-33: invented names do not add series.
    #[test]
    fn made_up_names_are_one_series() {
        let met = Met(Mutex::new(BTreeSet::new()));
        for number in 0..MOST_VALUES {
            assert_eq!(met.bounded(&format!("m{number}")).as_str(), format!("m{number}"));
        }
        assert_eq!(met.bounded("one more").as_str(), OTHER);
        assert_eq!(met.bounded("m0").as_str(), "m0");
        let long = "x".repeat(5000);
        assert!(Met(Mutex::new(BTreeSet::new())).bounded(&long).as_str().len() <= LONGEST);
    }

    /// A provider's absurd counts do not make the sums overflow.
    #[test]
    fn absurd_counts_do_not_overflow() {
        let counted = Counted::of("absurd", "1.0.0", "m");
        for _ in 0..3 {
            counted.used("p", i64::MAX, i64::MAX);
        }
        counted.used("p", -1, 0);
    }

    /// OSSA's names as Prometheus writes them.
    #[test]
    fn prometheus_reads_the_names_of_ossa() {
        let counted = Counted::of("a", "1.0.0", "m");
        counted.invoked();
        counted.turned(Duration::from_millis(40));
        counted.failed("LLM_ERROR");
        counted.called("search", Some("TOOL_ERROR"));
        counted.used("p", 12, 7);
        counted.asked("p", Duration::from_millis(30), None);
        let families = gathered();
        let names: Vec<&str> = families.iter().map(MetricFamily::name).collect();
        for name in [
            "ossa_agent_invocations_total",
            "ossa_agent_turns_total",
            "ossa_agent_errors_total",
            "ossa_tokens_input_total",
            "ossa_tokens_output_total",
            "ossa_tool_calls_total",
            "ossa_tool_errors_total",
            "ossa_agent_latency_milliseconds",
            "gen_ai_client_operation_duration_seconds",
            "gen_ai_client_token_usage",
        ] {
            assert!(names.contains(&name), "{name} is not in {names:?}");
        }
    }
}
