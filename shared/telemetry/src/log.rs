//! Logs: one line per fact on standard error, with every known secret struck out.

use crate::line::TextLine;
use crate::otlp::{self, LogRecords, Service};
use crate::trace_ids::WithIds;
use crate::{redact, terminal};
use std::io::{self, Write};
use tracing::Metadata;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::fmt::{MakeWriter, format};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// The filter when none is configured.
const DEFAULT_FILTER: &str = "info,sqlx=warn,apalis=warn,hyper=warn,tower_http=warn";

/// The MCP library logs every end of a connection as an error. The worker itself reports those that are errors.
const SILENT: &str = "rmcp=off";

/// The target of audit entries.
const AUDIT: &str = "turnstone::audit";

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogFormat {
    /// For people: at most 200 characters per line.
    #[default]
    Pretty,
    /// One JSON object per line: `timestamp`, `level`, `target`, `message`, and the fields, each in full.
    Json,
}

impl LogFormat {
    /// Reads `pretty` or `json`; `None` for an unknown word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "pretty" => Some(Self::Pretty),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Starts logging to standard error for this process. For a service it also starts spans, metrics and log records by
/// OTLP, as the `OTEL_*` variables ask. A second call changes nothing.
///
/// `filter` is in the syntax of `tracing_subscriber::EnvFilter`, such as `info,turnstone_worker=debug`. A filter that
/// cannot be read is reported in the log and the default is used (see [`check_filter`] to refuse it earlier). Lines of
/// the MCP library are left out unless the filter names `rmcp`. The filter concerns log lines: spans do not depend on
/// it, and neither do the exported entries of the audit.
pub fn init(format: LogFormat, filter: Option<&str>, color: bool, service: Option<&Service>) {
    let mut problems = Vec::new();
    let text = match filter.map(|filter| (filter, read_filter(filter))) {
        None => DEFAULT_FILTER,
        Some((filter, Ok(_))) => filter,
        Some((_, Err(problem))) => {
            problems.push(format!("{problem}; logging with `{DEFAULT_FILTER}` instead"));
            DEFAULT_FILTER
        }
    };
    let started = service.map(otlp::start);
    let spans = started.as_ref().map(|started| {
        let layer = tracing_opentelemetry::layer()
            .with_tracer(started.tracer.clone())
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false);
        // Without a collector the spans of single phases would only cost time and memory.
        let finest = if otlp::exports_spans() { LevelFilter::DEBUG } else { LevelFilter::INFO };
        layer.with_filter(
            filter_fn(move |metadata| metadata.is_span() && ours(metadata) && *metadata.level() <= finest)
                .with_max_level_hint(finest),
        )
    });
    let records = started
        .as_ref()
        .and_then(|started| started.logs.as_ref())
        .map(|provider| LogRecords::new(provider).with_filter(records_of(text).and(filter_fn(ours))));
    problems.extend(started.into_iter().flat_map(|started| started.problems));
    let is_json = format == LogFormat::Json;
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that logs; lines are made safe for a terminal"
    )]
    let inner = io::stderr;
    let lines = tracing_subscriber::fmt::layer().with_writer(Redacted { inner, is_json });
    let lines: Box<dyn Layer<_> + Send + Sync> = match format {
        LogFormat::Pretty => Box::new(lines.with_ansi(color).event_format(TextLine)),
        LogFormat::Json => {
            let format = format::Format::default().json().flatten_event(true);
            let format = format.with_span_list(false).with_current_span(false);
            Box::new(lines.fmt_fields(format::JsonFields::new()).event_format(WithIds(format)))
        }
    };
    let subscriber = Registry::default().with(spans).with(records).with(lines.with_filter(lines_of(text)));
    if subscriber.try_init().is_ok() {
        for problem in problems {
            tracing::warn!("{problem}");
        }
    }
}

/// Returns the filter of the lines on standard error. A directive for `rmcp` in `filter` replaces ours.
fn lines_of(filter: &str) -> EnvFilter {
    EnvFilter::new(format!("{SILENT},{filter}"))
}

/// Returns the filter of the exported records. It lets the entries of the audit pass, which the store writes for this
/// target, whatever the filter of the lines is.
fn records_of(filter: &str) -> EnvFilter {
    EnvFilter::new(format!("{filter},{AUDIT}=info"))
}

/// Returns true for our own spans and events. Those of libraries are not exported, least of all those of the exporters.
fn ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("turnstone")
}

/// Checks a log filter without using it.
///
/// # Errors
/// A sentence with the filter, the problem and the form of a filter.
pub fn check_filter(filter: &str) -> Result<(), String> {
    read_filter(filter).map(|_| ())
}

fn read_filter(filter: &str) -> Result<EnvFilter, String> {
    EnvFilter::try_new(filter).map_err(|error| {
        format!(
            "the log filter `{filter}` cannot be read ({error}); write it like `info,turnstone_worker=debug`"
        )
    })
}

/// Makes writers that strike out secrets before anything reaches the writer behind them.
struct Redacted<M> {
    inner: M,
    /// True for lines of JSON, in which characters that a terminal would obey are escaped. [`TextLine`] removes them.
    is_json: bool,
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Redacted<M> {
    type Writer = RedactedLine<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        RedactedLine { inner: self.inner.make_writer(), is_json: self.is_json, line: Vec::new() }
    }
}

/// The writer of one event. It holds the text back until the event is complete, because a secret may be cut by two
/// writes.
struct RedactedLine<W: Write> {
    inner: W,
    is_json: bool,
    line: Vec<u8>,
}

impl<W: Write> Write for RedactedLine<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let line = redact(&String::from_utf8_lossy(&line));
        let line = if self.is_json { terminal::json(&line) } else { line.into() };
        self.inner.write_all(line.as_bytes())?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for RedactedLine<W> {
    fn drop(&mut self) {
        // If standard error cannot be written, the line is lost.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecretRef;
    use crate::paper::Paper;

    fn secret(value: &str) -> String {
        let file = tempfile(value);
        SecretRef::File(file.clone()).resolve().unwrap();
        std::fs::remove_file(file).unwrap();
        value.to_owned()
    }

    fn tempfile(value: &str) -> std::path::PathBuf {
        let file = std::env::temp_dir().join(format!("turnstone-log-{}-{}", std::process::id(), value.len()));
        std::fs::write(&file, value).unwrap();
        file
    }

    #[test]
    fn a_logged_secret_is_struck_out_in_both_formats() {
        let key = secret("sk-a\"quoted\\key");
        for json in [false, true] {
            let paper = Paper::default();
            let copy = paper.clone();
            let inner = move || copy.clone();
            let lines =
                tracing_subscriber::fmt().with_writer(Redacted { inner, is_json: json }).with_ansi(false);
            let log = || {
                tracing::info!(%key, "asking with {key}\u{202e}");
                tracing::info!(key = ?key, "again");
            };
            if json {
                tracing::subscriber::with_default(lines.json().flatten_event(true).finish(), log);
            } else {
                tracing::subscriber::with_default(lines.finish(), log);
            }
            let text = paper.text();
            assert_eq!(text.lines().count(), 2, "{text}");
            assert!(!text.contains("quoted") && text.contains("asking with ***"), "{text}");
            assert_eq!(text.contains("***\\u202e"), json, "{text}");
        }
    }

    #[test]
    fn a_secret_cut_by_two_writes_is_found() {
        let key = secret("cut-in-the-middle");
        let paper = Paper::default();
        let mut line = RedactedLine { inner: paper.clone(), is_json: false, line: Vec::new() };
        line.write_all(&key.as_bytes()[..5]).unwrap();
        line.write_all(&key.as_bytes()[5..]).unwrap();
        drop(line);
        assert_eq!(paper.text(), "***");
    }

    #[test]
    fn the_mcp_library_is_silent_unless_the_filter_names_it() {
        for (filter, is_heard) in [("info", false), ("warn,turnstone=info", false), ("info,rmcp=warn", true)]
        {
            let paper = Paper::default();
            let copy = paper.clone();
            let lines = tracing_subscriber::fmt::layer().with_writer(move || copy.clone());
            let subscriber = Registry::default().with(lines.with_filter(lines_of(filter)));
            tracing::subscriber::with_default(subscriber, || {
                tracing::error!(target: "rmcp::transport::worker", "worker quit with fatal");
                tracing::warn!(target: "turnstone_worker::tool::mcp", "an MCP server is not available");
            });
            let text = paper.text();
            assert_eq!(text.contains("worker quit"), is_heard, "{filter}: {text}");
            assert!(text.contains("not available"), "{filter}: {text}");
        }
    }

    #[test]
    fn a_wrong_filter_is_named() {
        assert!(check_filter("info,turnstone_worker=debug").is_ok());
        assert!(check_filter("worker=loudly").unwrap_err().contains("`worker=loudly`"));
    }

    #[test]
    fn formats_are_read_by_their_words() {
        assert_eq!(LogFormat::parse("json"), Some(LogFormat::Json));
        assert_eq!(LogFormat::parse("pretty"), Some(LogFormat::Pretty));
        assert_eq!(LogFormat::parse("xml"), None);
    }
}
