//! How many jobs may wait in a queue (OJS backpressure): a push that does not fit is refused whole.
//!
//! What waits is counted only for queues that have a bound, and their rows are locked before, so that pushes of several
//! processes cannot pass the bound together.

use super::PushEntry;
use super::unique::Verdict;
use crate::engine::rows::{Fields, Inconsistency, get};
use crate::engine::session::{Args, Row, Session};
use crate::engine::statement::{decode_all, read, read_by};
use crate::{Pressure, Pushed, StoreError, sql};
use std::collections::{BTreeMap, BTreeSet};
use turnstone_domain::job::Envelope;

/// A queue with a bound.
struct QueueBound {
    name: String,
    max_depth: Option<i64>,
    max_bytes: Option<i64>,
    warn_at: Option<i64>,
    depth: i64,
    bytes: i64,
}

impl QueueBound {
    fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        Ok(Self {
            name: get(row, "name")?,
            max_depth: get(row, "max_depth")?,
            max_bytes: get(row, "max_bytes")?,
            warn_at: get(row, "warn_at")?,
            depth: 0,
            bytes: 0,
        })
    }

    /// Why more does not fit.
    fn refusal(&self, jobs: i64, bytes: i64) -> Option<StoreError> {
        let (depth, bound) = match (self.max_depth, self.max_bytes) {
            (Some(most), _) if self.depth + jobs > most => (self.depth, most),
            (_, Some(most)) if self.bytes + bytes > most => (self.bytes, most),
            _ => return None,
        };
        Some(StoreError::QueueFull { queue: self.name.clone(), depth, bound })
    }
}

/// The bounds of the queues that are pushed into.
#[derive(Default)]
pub(super) struct Bounds(BTreeMap<String, QueueBound>);

impl Bounds {
    /// Locks the queues and counts what waits in them.
    pub(super) async fn read(session: &mut Session, bounded: BTreeSet<String>) -> Result<Self, StoreError> {
        let keys = bounded.into_iter().collect();
        let mut bounds = Self::default();
        for mut bound in
            read_by(session, "read bounds", &sql::LOCK_QUEUE_BOUNDS, keys, QueueBound::decode).await?
        {
            let values = [bound.name.as_str().into()];
            let rows =
                session.rows("count waiting jobs", &sql::SELECT_QUEUE_DEPTH, Args::Values(&values)).await?;
            bound.depth = decode_all(&rows, |row| get(row, "depth"))?.pop().unwrap_or_default();
            if bound.max_bytes.is_some() {
                let decode = |row: &Row| get::<i64>(row, "bytes");
                let bytes =
                    read(session, "measure waiting jobs", &sql::SELECT_QUEUE_BYTES, &values, decode).await?;
                bound.bytes = bytes.into_iter().next().unwrap_or_default();
            }
            bounds.0.insert(bound.name.clone(), bound);
        }
        Ok(bounds)
    }

    /// Counts the jobs of a push that are new; refuses all of them when some do not fit. Steps of workflows that run
    /// have been accepted with their workflow, and agents that an agent asks for help have to come: they always fit.
    pub(super) fn admit(&mut self, entries: &[PushEntry<'_>], plan: &[Verdict]) -> Result<(), StoreError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut new: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for (entry, verdict) in entries.iter().zip(plan) {
            if matches!(verdict, Verdict::Take(_)) && self.0.contains_key(&entry.job.queue) {
                let (jobs, bytes) = new.entry(&entry.job.queue).or_default();
                *jobs += 1;
                *bytes += size(&entry.job.envelope);
            }
        }
        let is_client = entries.iter().all(|entry| {
            entry.step.is_none() && entry.delegation.is_none_or(|delegation| delegation.call_id.is_none())
        });
        for (queue, (jobs, bytes)) in &new {
            let refused =
                self.0.get(*queue).filter(|_| is_client).and_then(|bound| bound.refusal(*jobs, *bytes));
            if let Some(refused) = refused {
                return Err(refused);
            }
        }
        for (queue, (jobs, bytes)) in new {
            if let Some(bound) = self.0.get_mut(queue) {
                bound.depth += jobs;
                bound.bytes += bytes;
            }
        }
        Ok(())
    }

    /// Adds a warning for each queue that is fuller than its `warn_at`.
    pub(super) fn tell(&self, entries: &[PushEntry<'_>], pushed: &mut [Pushed]) {
        for (entry, pushed) in entries.iter().zip(pushed) {
            let bound = self.0.get(&entry.job.queue);
            pushed.pressure = bound
                .filter(|b| b.warn_at.is_some_and(|at| b.depth >= at))
                .map(|bound| Pressure { depth: bound.depth, bound: bound.max_depth });
        }
    }
}

/// The length of what is stored of an envelope, in bytes.
fn size(envelope: &Envelope) -> i64 {
    let lengths = [
        serde_json::to_string(&envelope.args),
        serde_json::to_string(&envelope.meta),
        serde_json::to_string(&envelope.options),
        serde_json::to_string(&envelope.extra),
    ];
    lengths.into_iter().flatten().map(|text| i64::try_from(text.len()).unwrap_or(i64::MAX)).sum()
}
