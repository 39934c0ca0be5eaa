//! What this process knows of the jobs whose leases it holds.
//!
//! While a lease holds, nobody else writes its job, so the next step of its turn need not read it again. What is
//! known is never trusted blindly: every row is written on the condition that it is as it was known, and when that
//! fails the rows are read anew.

use super::rows::{EngagementRow, JobRow};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use turnstone_domain::budget::Budget;

/// More jobs than this are not kept; workers that hold more leases read again.
const KEPT: usize = 65_536;

/// A job with its engagement.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub job: Box<JobRow>,
    pub engagement: Option<Box<EngagementRow>>,
}

/// What became of a job in a transaction, by the token of its lease.
pub(super) type Learnt = (String, Option<Known>);

/// By the token of the lease.
#[derive(Default)]
pub(super) struct Held {
    jobs: Mutex<Table>,
}

/// What is known. Jobs of one tree share a budget: the newest of what is known of it stands for all of them.
#[derive(Default)]
struct Table {
    jobs: HashMap<String, Known>,
    budgets: HashMap<i64, Budget>,
}

impl Held {
    /// Takes out the job of this lease, if it is known. The transaction that takes it gives it back with [`Held::learn`];
    /// after one that failed it is read again.
    pub(super) fn take(&self, token: &str) -> Option<Known> {
        let mut table = self.table();
        let mut known = table.jobs.remove(token)?;
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
        for (token, known) in learnt {
            match known {
                Some(known) => {
                    if let Some(row) = known.engagement.as_ref().filter(|row| row.shares_budget()) {
                        table.budgets.insert(row.budget_seq, row.budget);
                    }
                    table.jobs.insert(token, known);
                }
                None => drop(table.jobs.remove(&token)),
            }
        }
        if table.jobs.len() > KEPT || table.budgets.len() > KEPT {
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
