//! Logs: one line per event on standard error, with every known secret struck out.

use crate::redact;
use std::io::{self, Write};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// What is logged when nobody says otherwise.
const DEFAULT_FILTER: &str = "info,sqlx=warn,apalis=warn,hyper=warn,tower_http=warn";

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Pretty,
    /// One JSON object per line: `timestamp`, `level`, `target`, `message`, the fields, and the current `span`.
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

/// Starts logging to standard error for this process. A second call changes nothing.
///
/// `filter` is in the syntax of `tracing_subscriber::EnvFilter`, such as `info,turnstone_worker=debug`; a filter that
/// cannot be read is reported in the log and the default is used (see [`check_filter`] to refuse it earlier).
pub fn init(format: LogFormat, filter: Option<&str>, color: bool) {
    let (filter, problem) = match filter.map(read_filter) {
        None => (EnvFilter::new(DEFAULT_FILTER), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(problem)) => (EnvFilter::new(DEFAULT_FILTER), Some(problem)),
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Redacted(io::stderr));
    let started = match format {
        LogFormat::Pretty => lines.with_ansi(color).with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).try_init(),
    };
    if let (Ok(()), Some(problem)) = (started, problem) {
        tracing::warn!("{problem}; logging with `{DEFAULT_FILTER}` instead");
    }
}

/// Checks a log filter without using it.
///
/// # Errors
/// A sentence that names the filter, what is wrong with it and what a filter looks like.
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
struct Redacted<M>(M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Redacted<M> {
    type Writer = RedactedLine<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        RedactedLine { inner: self.0.make_writer(), line: Vec::new() }
    }
}

/// The writer of one event. It holds the text back until the event is complete, because a secret may be cut by two
/// writes.
struct RedactedLine<W: Write> {
    inner: W,
    line: Vec<u8>,
}

impl<W: Write> Write for RedactedLine<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.inner.write_all(redact(&String::from_utf8_lossy(&line)).as_bytes())?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for RedactedLine<W> {
    fn drop(&mut self) {
        // Standard error that cannot be written leaves nobody to tell.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecretRef;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Paper {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

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
            let lines =
                tracing_subscriber::fmt().with_writer(Redacted(move || copy.clone())).with_ansi(false);
            let log = || {
                tracing::info!(%key, "asking with {key}");
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
        }
    }

    #[test]
    fn a_secret_cut_by_two_writes_is_found() {
        let key = secret("cut-in-the-middle");
        let paper = Paper::default();
        let mut line = RedactedLine { inner: paper.clone(), line: Vec::new() };
        line.write_all(&key.as_bytes()[..5]).unwrap();
        line.write_all(&key.as_bytes()[5..]).unwrap();
        drop(line);
        assert_eq!(paper.text(), "***");
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
