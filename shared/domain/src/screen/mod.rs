//! Looking for what an agent's author wants to be filtered. Pure functions over texts: what is done with what they
//! find is decided by whoever asks.

pub mod content;
pub mod personal;
