//! Tools of MCP servers: one connection per server and worker, shared by all turns (RS-12).
//!
//! The protocol is `rmcp`'s. This module decides when a server is started, called, paused after failures, and
//! killed. It also decides which of its tools an agent may see, and how much of its output is read. A server
//! is not trusted: its process receives no secret beyond its configuration, its answers are bounded, and its
//! requests (sampling, roots, elicitation) are declined.

mod catalogue;
mod child;
pub mod config;
mod connection;
mod http;
mod listed;
mod message;
mod outcome;
mod pin;
mod reply;
mod server;
mod sse;
#[cfg(test)]
mod tests;
mod tool;

pub use catalogue::{Catalogue, Withheld};
pub use config::McpConfig;
pub use server::McpServer;
pub use tool::McpTool;
