//! What people and machines see of a running Turnstone: log set-up, names of spans, and the redaction of secrets.
//!
//! It knows nothing about jobs, stores or models, and imports nothing of ours.

mod log;
pub mod names;
pub mod secret;

pub use log::{LogFormat, check_filter, init};
pub use secret::{Secret, SecretRef, redact};
