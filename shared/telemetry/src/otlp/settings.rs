//! The `OTEL_*` variables. The exporters read endpoints, headers, timeouts and sizes of queues by themselves.

use crate::Secret;
use crate::propagation::Format;
use std::collections::HashMap;

/// The signals to send, and the formats of trace contexts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Settings {
    /// True if spans are sent.
    pub(crate) spans: bool,
    /// True if metrics are sent.
    pub(crate) metrics: bool,
    /// True if log records are sent.
    pub(crate) logs: bool,
    /// The formats of trace contexts (`OTEL_PROPAGATORS`).
    pub(crate) propagators: Vec<Format>,
    /// Requested settings that are not supported, in sentences.
    pub(crate) problems: Vec<String>,
}

/// Returns a variable of this process; an empty one counts as none.
pub(crate) fn variable(name: &str) -> Option<String> {
    crate::environment::var(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Returns the headers of the requests with a signal, such as `TRACES`. The exporter reads its variables from the environment
/// alone, and headers are credentials, which a serving process moves out of it.
pub(crate) fn headers(signal: &str) -> HashMap<String, String> {
    let given = variable(&format!("OTEL_EXPORTER_OTLP_{signal}_HEADERS"));
    let given = given.or_else(|| variable("OTEL_EXPORTER_OTLP_HEADERS")).unwrap_or_default();
    let pairs = given.split(',').filter_map(|header| header.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

/// Returns true if spans may contain prompts, answers, arguments and results
/// (`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`).
#[must_use]
pub fn captures_content() -> bool {
    static CAPTURES: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *CAPTURES.get_or_init(|| {
        variable("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    })
}

impl Settings {
    /// Reads the variables of this process.
    pub(crate) fn of_process() -> Self {
        for name in ["", "TRACES_", "METRICS_", "LOGS_"] {
            let headers = variable(&format!("OTEL_EXPORTER_OTLP_{name}HEADERS")).unwrap_or_default();
            for value in
                headers.split(',').filter_map(|header| header.split_once('=')).map(|(_, value)| value)
            {
                // A header of an exporter is a credential; from here on it is struck out everywhere.
                let _ = Secret::given(value.trim());
            }
        }
        Self::of(variable)
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut problems = Vec::new();
        let propagators = propagators(variable("OTEL_PROPAGATORS").as_deref(), &mut problems);
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Self { propagators, problems, ..Self::default() };
        }
        let mut sends = |signal: &str| {
            let own = |rest: &str| variable(&format!("OTEL_EXPORTER_OTLP_{signal}_{rest}"));
            let reached = own("ENDPOINT").or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT")).is_some();
            let by = variable(&format!("OTEL_{signal}_EXPORTER")).unwrap_or_else(|| "otlp".to_owned());
            if !reached || by == "none" {
                return false;
            }
            if by.split(',').all(|name| name.trim() != "otlp") {
                problems
                    .push(format!("OTEL_{signal}_EXPORTER={by} is not known here: `otlp` and `none` are"));
                return false;
            }
            let protocol = own("PROTOCOL").or_else(|| variable("OTEL_EXPORTER_OTLP_PROTOCOL"));
            if let Some(protocol) = protocol.filter(|protocol| protocol != "http/protobuf") {
                problems.push(format!("OTLP needs http/protobuf, not {protocol}"));
            }
            true
        };
        let (spans, metrics, logs) = (sends("TRACES"), sends("METRICS"), sends("LOGS"));
        // A problem with all three signals is reported once.
        problems.dedup();
        Self { spans, metrics, logs, propagators, problems }
    }
}

fn propagators(given: Option<&str>, problems: &mut Vec<String>) -> Vec<Format> {
    let mut formats = Vec::new();
    for name in given.unwrap_or("tracecontext,baggage").split(',').map(str::trim) {
        match Format::named(name) {
            Some(format) => formats.push(format),
            None if name == "none" => return Vec::new(),
            None => problems.push(format!("OTEL_PROPAGATORS: `{name}` is not known here; {}", Format::KNOWN)),
        }
    }
    formats
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Settings {
        Settings::of(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_sent_without_an_endpoint() {
        let quiet = of(&[]);
        assert_eq!((quiet.spans, quiet.metrics, quiet.logs), (false, false, false));
        assert_eq!(quiet.propagators, [Format::TraceContext, Format::Baggage]);
        assert!(quiet.problems.is_empty());
    }

    #[test]
    fn signals_are_switched_one_by_one_or_together() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        let all = of(&[endpoint]);
        assert_eq!((all.spans, all.metrics, all.logs), (true, true, true));
        let traces = of(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c/v1/traces")]);
        assert_eq!((traces.spans, traces.metrics, traces.logs), (true, false, false));
        let some = of(&[endpoint, ("OTEL_METRICS_EXPORTER", "none"), ("OTEL_LOGS_EXPORTER", "console")]);
        assert_eq!((some.spans, some.metrics, some.logs), (true, false, false));
        assert!(some.problems[0].contains("OTEL_LOGS_EXPORTER=console"), "{some:?}");
        let off = of(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]);
        assert_eq!((off.spans, off.metrics, off.logs), (false, false, false));
    }

    #[test]
    fn what_is_not_known_is_named() {
        let odd = of(&[
            ("OTEL_PROPAGATORS", "tracecontext, xray ,b3"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ]);
        assert_eq!(odd.propagators, [Format::TraceContext, Format::B3]);
        assert!(odd.problems.iter().any(|problem| problem.contains("`xray`")), "{odd:?}");
        assert!(odd.problems.iter().any(|problem| problem.contains("not grpc")), "{odd:?}");
        assert_eq!(of(&[("OTEL_PROPAGATORS", "none")]).propagators, []);
    }
}
