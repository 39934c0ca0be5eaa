//! Models as agents meet them: whether tools may be called, what a hostile provider does, and what is heard meanwhile.

mod choice;
mod flood;
mod hostile;
pub mod languages;
mod live;
mod live_fleet;
mod places;
