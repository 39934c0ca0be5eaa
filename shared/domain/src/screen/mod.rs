//! The filters of an agent's safety rules. Pure functions over texts: the caller decides the action on a finding.

pub mod content;
pub mod personal;
