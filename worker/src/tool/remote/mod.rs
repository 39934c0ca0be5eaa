//! Agents on other servers.
//!
//! `oagent://host/path/name` (OAS-11, OAS-14): the definition is read by GET, an engagement begun by POST and followed at the
//! address that the answer names, all at the same host. `[remote.agents.<name>]`: a tool of that name, spoken to by the Agent
//! Protocol or by A2A.
//!
//! Whatever it speaks, an agent elsewhere is one kind of tool. What it works under is noted in the journal before it is waited
//! for, so a worker that takes over waits for the same.

mod a2a;
mod agent;
mod agent_protocol;
mod book;
pub mod config;
mod engaging;
mod named;
mod wire;

pub use agent::{RemoteAgent, Standing};
pub use book::RemoteBook;
pub use config::RemoteConfig;
