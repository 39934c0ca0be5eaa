//! A process's knowledge of the jobs whose leases it holds.
//!
//! While a lease holds, no other process writes its job, so the next step of its turn need not read it again. The
//! copy is never trusted blindly: every row is written on the condition that it has not changed. When that
//! condition fails, the rows are read again.

use super::rows::{EngagementRow, JobRow};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use turnstone_domain::JobId;
use turnstone_domain::budget::Budget;

/// More jobs of agents than this are not kept; workers that hold more leases read again.
const KEPT: usize = 65_536;
/// The same for plain jobs: another process may write their ends, and this one does not notice.
const KEPT_PLAIN: usize = 8_192;

/// A job with its engagement.
#[derive(Clone, Debug)]
pub(super) struct KnownJob {
    pub job: Box<JobRow>,
    pub engagement: Option<Box<EngagementRow>>,
}

/// A job after a transaction; `None` when it has no lease, or is to be read again.
pub(super) type Learnt = (JobId, Option<KnownJob>);

/// The jobs with leases, as far as they are known.
#[derive(Default)]
pub(super) struct HeldJobs {
    jobs: Mutex<Table>,
}

/// The copies of rows. Jobs of one tree share a budget: all of them use its newest copy.
#[derive(Default)]
struct Table {
    agents: HashMap<JobId, KnownJob>,
    plain: HashMap<JobId, KnownJob>,
    budgets: HashMap<i64, Budget>,
}

impl HeldJobs {
    /// Takes out a job, if it is known and `fits`. The transaction that takes it gives it back with [`HeldJobs::learn`]; after
    /// one that failed it is read again.
    pub(super) fn take(&self, job: &JobId, fits: impl Fn(&KnownJob) -> bool) -> Option<KnownJob> {
        let mut table = self.table();
        let Table { agents, plain, .. } = &mut *table;
        let jobs = if agents.contains_key(job) { agents } else { plain };
        jobs.get(job).filter(|known| fits(known))?;
        let mut known = jobs.remove(job)?;
        if let Some(row) = &mut known.engagement
            && let Some(budget) = table.budgets.get(&row.budget_seq)
        {
            row.budget = *budget;
        }
        Some(known)
    }

    /// Takes over what a transaction that is committed did.
    pub(super) fn learn(&self, learnt: Vec<Learnt>) {
        let mut table = self.table();
        for (job, known) in learnt {
            match known {
                Some(known) if known.engagement.is_none() => drop(table.plain.insert(job, known)),
                Some(known) => {
                    if let Some(row) = known.engagement.as_ref().filter(|row| row.shares_budget()) {
                        table.budgets.insert(row.budget_seq, row.budget);
                    }
                    table.agents.insert(job, known);
                }
                None => {
                    table.agents.remove(&job);
                    table.plain.remove(&job);
                }
            }
        }
        if table.agents.len() > KEPT || table.budgets.len() > KEPT || table.plain.len() > KEPT_PLAIN {
            *table = Table::default();
        }
    }

    /// Forgets everything.
    pub(super) fn forget(&self) {
        *self.table() = Table::default();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
