//! Unique jobs (OJS unique jobs §3, §4): which jobs a new one may not exist beside.
//!
//! Comparing and inserting is one transaction. On PostgreSQL, where several processes write, a comparison locks the
//! keys until the commit, in one order. Pushes without unique jobs pay nothing.

use crate::engine::columns::Columns;
use crate::engine::rows::{AlikeKey, JobRow, get};
use crate::engine::session::{Args, Session};
use crate::engine::statement::read_by;

use super::super::cancel;
use super::{PushEntry, first_state};
use crate::engine::unit::Unit;
use crate::{StoreError, sql};
use std::collections::{BTreeMap, HashMap};
use turnstone_domain::terms::{OnConflict, Unique};
use turnstone_domain::{JobId, JobState, NewJob, Timestamp};

/// Returns the key to compare: the fingerprint, within the tenant. Jobs of two tenants never conflict.
pub(super) fn key(job: &NewJob) -> Option<String> {
    let fingerprint = &job.terms.unique.as_ref()?.fingerprint;
    Some(match &job.terms.tenant {
        Some(tenant) => format!("{tenant}/{fingerprint}"),
        None => fingerprint.clone(),
    })
}

#[derive(Clone)]
struct Other {
    id: JobId,
    state: JobState,
    created_at: Timestamp,
    run_at: Timestamp,
}

/// Jobs by their keys, and those that are replaced, each with the time at which it is.
type JobsByFingerprint = HashMap<String, Vec<Other>>;

/// Jobs that new ones may conflict with: what is stored, and what this transaction adds.
#[derive(Default)]
pub(super) struct Alike {
    known: JobsByFingerprint,
    replaced: Vec<(JobId, Timestamp)>,
}

/// The state that a push would leave: only the differences.
pub(super) struct After {
    known: JobsByFingerprint,
    replaced: Vec<(JobId, Timestamp)>,
}

/// The decision about a new job.
pub(super) enum Verdict {
    /// It is stored, and may run at this time.
    Take(Timestamp),
    /// This existing job replaces it.
    Other(JobId, JobState),
}

impl Alike {
    /// Reads what may be in conflict with these jobs, and keeps others from changing it.
    pub(super) async fn read(
        session: &mut Session,
        pushes: &[Vec<PushEntry<'_>>],
    ) -> Result<Self, StoreError> {
        // Sorted: this is the one order of the locks.
        let mut wanted: BTreeMap<(String, &'static str), (JobState, i64)> = BTreeMap::new();
        for entry in pushes.iter().flatten() {
            let Some((key, unique)) = key(entry.job).zip(entry.job.terms.unique.as_ref()) else { continue };
            let after = unique.period_ms.map_or(-1, |ms| entry.job.created_at.0.saturating_sub(ms));
            for state in JobState::ALL.iter().filter(|state| compared(unique, **state)) {
                let known = wanted.entry((key.clone(), state.as_str())).or_insert((*state, after));
                known.1 = after.min(known.1);
            }
        }
        if wanted.is_empty() {
            return Ok(Self::default());
        }
        let mut keys: Vec<String> = wanted.keys().map(|(key, _)| key.clone()).collect();
        keys.dedup();
        let text = &sql::LOCK_UNIQUE_KEYS;
        session.rows("lock unique keys", text, Args::Rows(Columns::of(keys, text)?, &[])).await?;
        let wanted = wanted.into_iter();
        let wanted =
            wanted.map(|((unique_key, _), (state, after))| AlikeKey { unique_key, state, after }).collect();
        let found =
            read_by(session, "look for jobs that are alike", &sql::SELECT_DUPLICATE_JOBS, wanted, |row| {
                let other = Other {
                    id: JobId(get(row, "id")?),
                    state: get::<JobState>(row, "state")?,
                    created_at: get(row, "created_at")?,
                    run_at: get(row, "run_at")?,
                };
                Ok((get::<String>(row, "unique_key")?, other))
            })
            .await?;
        let mut known = JobsByFingerprint::new();
        for (key, other) in found {
            known.entry(key).or_default().push(other);
        }
        let mut read = Self { known, replaced: Vec::new() };
        let replaces = |entry: &PushEntry<'_>| {
            let unique = entry.job.terms.unique.as_ref();
            unique
                .is_some_and(|unique| !matches!(unique.on_conflict, OnConflict::Reject | OnConflict::Ignore))
        };
        if pushes.iter().flatten().any(replaces) {
            read.hold(session).await?;
        }
        Ok(read)
    }

    /// Locks the job to be replaced, so that its state cannot change before. A job that a worker has just claimed
    /// may no longer conflict.
    async fn hold(&mut self, session: &mut Session) -> Result<(), StoreError> {
        let live = self.known.values().flatten().filter(|other| !other.state.is_terminal());
        let keys = live.map(|other| other.id.clone()).collect();
        let held = read_by(session, "read jobs", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
        let states: HashMap<JobId, JobState> = held.into_iter().map(|row| (row.id, row.state)).collect();
        for other in self.known.values_mut().flatten() {
            other.state = states.get(&other.id).copied().unwrap_or(other.state);
        }
        Ok(())
    }

    /// Nothing differs yet.
    pub(super) fn unchanged(&self) -> After {
        After { known: JobsByFingerprint::new(), replaced: Vec::new() }
    }

    /// Returns the decision about a job, after those before it in the same push.
    pub(super) fn judge(&self, after: &mut After, entry: &PushEntry<'_>) -> Result<Verdict, StoreError> {
        let job = entry.job;
        let Some((key, unique)) = key(job).zip(job.terms.unique.as_ref()) else {
            return Ok(Verdict::Take(job.run_at));
        };
        let others =
            after.known.entry(key).or_insert_with_key(|key| self.known.get(key).cloned().unwrap_or_default());
        let mut conflicts: Vec<&mut Other> =
            others.iter_mut().filter(|other| conflicts(unique, other, job.created_at)).collect();
        // The conflict that lasts longest from now on is named; a job that has ended conflicts, too.
        conflicts.sort_by_key(|other| (!other.state.is_terminal(), other.created_at));
        let mut run_at = job.run_at;
        if let Some(other) = conflicts.last() {
            match unique.on_conflict {
                // No other job can replace a step of a workflow: its end would not reach the workflow.
                OnConflict::Ignore if entry.step.is_none() => {
                    return Ok(Verdict::Other(other.id.clone(), other.state));
                }
                OnConflict::Reject | OnConflict::Ignore => {
                    let (job, existing) = (job.id.clone(), other.id.clone());
                    return Err(StoreError::NotUnique { job, existing });
                }
                OnConflict::ReplaceExceptSchedule if !other.state.is_terminal() => run_at = other.run_at,
                OnConflict::Replace | OnConflict::ReplaceExceptSchedule => {}
            }
        }
        for other in conflicts.into_iter().filter(|other| !other.state.is_terminal()) {
            other.state = JobState::Cancelled;
            after.replaced.push((other.id.clone(), job.created_at));
        }
        let state = first_state(job, run_at);
        others.push(Other { id: job.id.clone(), state, created_at: job.created_at, run_at });
        Ok(Verdict::Take(run_at))
    }

    /// The push is taken.
    pub(super) fn take_over(&mut self, after: After) {
        self.known.extend(after.known);
        self.replaced.extend(after.replaced);
    }

    /// Cancels what was replaced. It is stored by now, even if it came with this transaction.
    pub(super) async fn end_replaced(self, session: &mut Session, unit: &mut Unit) -> Result<(), StoreError> {
        let Some(at) = self.replaced.iter().map(|(_, at)| *at).max() else { return Ok(()) };
        let mut own = Unit::default();
        cancel::all(session, &mut own, self.replaced.into_iter().map(|(id, _)| id).collect(), at).await?;
        unit.absorb(own);
        Ok(())
    }
}

fn compared(unique: &Unique, state: JobState) -> bool {
    unique.states.contains(&state)
}

/// Returns true when a job conflicts with one that is accepted now (OJS unique jobs §3).
fn conflicts(unique: &Unique, other: &Other, now: Timestamp) -> bool {
    compared(unique, other.state) && unique.period_ms.is_none_or(|ms| now < other.created_at.plus_ms(ms))
}
