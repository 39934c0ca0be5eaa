//! The worker.

pub mod model;
pub mod tool;
