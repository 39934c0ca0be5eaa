//! The Agent Protocol (draft, 2025 edition): every registered agent, in any format, over REST and server-sent events.
//!
//! A run is an engagement, a request is a job that carries one input into it. [`run_events`] writes the events of a run;
//! the endpoints read them.

mod begin;
mod cancel;
mod configure;
mod configured;
mod describe;
mod discover;
mod find;
mod getevents;
mod name;
mod process;
mod request_id;
mod request_types;
mod resume;
pub(crate) mod routes;
mod run_events;
mod runs;
mod status;
pub(crate) mod stream;
