//! Models: `tool_choice`, hostile providers, and deltas.

mod attached;
mod choice;
mod flood;
mod hostile;
pub mod languages;
mod live;
mod live_fleet;
mod numbers;
mod overflow;
mod places;
