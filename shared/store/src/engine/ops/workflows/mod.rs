//! Chains, groups, batches and graphs: jobs that wait for one another.
//!
//! A workflow's row is locked before its steps are read. Every end of a job that is a step leads here in the
//! transaction that ended it, so each end counts once. An end costs the work of the steps that wait for it:
//! counters say when all have ended, and the other steps are not read.

mod advance;
mod cancel;
mod create;
mod rows;

use turnstone_domain::{JobState, Timestamp};

pub(in super::super) use advance::advance;
pub(in super::super) use cancel::apply as cancel;
pub(in super::super) use create::apply as create;

/// A step of a workflow that has ended, in the transaction that ended it.
#[derive(Clone, Debug)]
pub(in super::super) struct Ended {
    pub workflow_seq: i64,
    pub step: i64,
    pub state: JobState,
    pub at: Timestamp,
}
