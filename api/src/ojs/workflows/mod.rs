//! Workflows: chains, groups, batches and graphs (OJS workflows §3 to §6).

pub(super) mod body;
mod cancel;
mod create;
mod list;
mod progress;
pub(crate) mod routes;
mod show;
