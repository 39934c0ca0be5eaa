//! Agents on other servers.
//!
//! `oagent://host/path/name` (OAS-11, OAS-14): the definition is read by GET, an engagement begun by POST and followed at the
//! address that the answer names, all at the same host. The call's id is the `Idempotency-Key`, so a worker that takes over
//! after a crash finds the engagement that its predecessor began.
//!
//! `[remote.agents.<name>]`: a tool of that name, spoken to by the Agent Protocol or by A2A. What it works under is noted in the
//! journal before it is waited for, so a worker that takes over waits for the same.

mod a2a;
mod agent;
mod agent_protocol;
mod book;
pub mod config;
mod named;
mod wire;

pub use agent::RemoteAgent;
pub use book::RemoteBook;
pub use config::RemoteConfig;
pub use named::NamedAgent;
