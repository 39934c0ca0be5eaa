//! Workers in any language: fetch, ack, nack, heartbeat, saved states and progress.

mod ack;
mod activate;
mod beat;
mod fetch;
mod forget_state;
mod heartbeat;
mod nack;
mod outcome;
pub(crate) mod routes;
mod save_state;
mod shapes;
mod show_progress;
mod show_state;
mod tell_progress;
mod worker_health;
