//! The subjects of measurements, one file each.

pub mod claim;
pub mod enqueue;
pub mod history;
pub mod idle;
pub mod memory;
pub mod start;
pub mod turns;
