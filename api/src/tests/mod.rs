//! The router over a real store in a temporary folder.

mod access;
mod agents;
mod budgets;
mod document;
mod engagements;
mod events;
mod jobs;
mod server;
