//! Logs, spans, metrics and their names, and the redaction of secrets.
//!
//! The crate knows nothing about jobs, stores or models, and imports none of our crates.
//!
//! ```text
//!  spans (names, span) ──┬─▶ log ─ line, trace_ids ─ secret ─▶ standard error
//!  records (tracing) ────┤
//!                        ╰─▶ otlp ─▶ a collector
//!  counts (metrics) ─────┬─▶ otlp
//!                        ╰─▶ Prometheus, through the process's /metrics
//!  headers of a caller ─ propagation ─▶ parent of a span ─ propagation ─▶ headers of outgoing requests
//! ```

pub mod environment;
mod line;
mod log;
pub mod metrics;
pub mod names;
mod otlp;
#[cfg(test)]
mod paper;
pub mod propagation;
pub mod secret;
mod seldom;
pub mod span;
pub mod terminal;
mod trace_ids;

pub use log::{LogFormat, check_filter, init};
pub use otlp::{Service, captures_content, exports_spans, shut_down};
pub use secret::{Secret, SecretRef, redact};
pub use seldom::{Seldom, SeldomEach};
