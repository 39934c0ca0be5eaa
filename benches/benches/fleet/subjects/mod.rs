//! The measured subjects, one file each.

pub mod faults;
pub mod feed;
pub mod flow;
pub mod long;
pub mod outage;
pub mod pressure;
pub mod readers;
pub mod scale_out;
pub mod takeover;
pub mod waiting;
