//! Agents on other Turnstone servers: `oagent://host/path/name` (OAS-11, OAS-14).
//!
//! The definition is read by GET, an engagement begun by POST and followed at the address that the answer names, all at the
//! same host. The call's id is the `Idempotency-Key`, so a worker that takes over after a crash finds the engagement that
//! its predecessor began.

mod agent;
mod book;
pub mod config;

pub use agent::RemoteAgent;
pub use book::RemoteBook;
pub use config::RemoteConfig;
