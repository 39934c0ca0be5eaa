//! What is measured, one file each.

pub mod faults;
pub mod long;
pub mod pressure;
pub mod readers;
pub mod scale_out;
pub mod takeover;
pub mod waiting;
