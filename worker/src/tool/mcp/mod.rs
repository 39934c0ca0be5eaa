//! Tools of MCP servers: one connection per server and worker, shared by all turns (RS-12).
//!
//! The protocol is `rmcp`'s. What is ours: when a server is started, asked, left alone and killed; which of its tools an
//! agent may see; and how much of what it says is read. A server is not trusted: its child process gets no secret that
//! it was not given, its answers are bounded, and what it asks of us (sampling, roots, elicitation) is declined.

mod catalogue;
mod child;
pub mod config;
mod connection;
mod outcome;
mod pin;
mod server;
#[cfg(test)]
mod tests;
mod tool;

pub use catalogue::{Catalogue, Withheld};
pub use config::McpConfig;
pub use server::McpServer;
pub use tool::McpTool;
