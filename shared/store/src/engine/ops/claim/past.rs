//! The past of claimed jobs: the checkpoints of their unfinished turns and, where that is all, their messages.

use crate::engine::journal;
use crate::engine::rows::{Fields, Inconsistency, JobRow, TurnKey, get};
use crate::engine::session::{Row, Session};
use crate::engine::statement::look_by;
use crate::engine::unit::Unit;
use crate::{Past, StoreError, sql};
use std::collections::HashMap;
use turnstone_domain::Checkpoint;
use turnstone_domain::message::StoredMessage;

/// The past of one job.
#[derive(Default)]
pub(in crate::engine) struct Done {
    pub checkpoints: Vec<Checkpoint>,
    messages: Vec<StoredMessage>,
    /// True when there is more than the rows of the unfinished turn hold.
    more: bool,
}

impl Done {
    fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        let said: i64 = get(row, "messages")?;
        Ok(Self {
            checkpoints: journal::checkpoints(row)?,
            messages: if said > 0 { journal::messages(row)? } else { Vec::new() },
            more: get(row, "more")?,
        })
    }

    fn add(&mut self, row: Self) {
        self.checkpoints.extend(row.checkpoints);
        self.messages.extend(row.messages);
        self.more |= row.more;
    }

    /// Returns what a worker has to recall of a job that was claimed before, whose engagement has this number of
    /// messages.
    pub(super) fn past(&mut self, messages: i64) -> Past {
        let mut known = std::mem::take(&mut self.messages);
        let is_all = !self.checkpoints.is_empty() && usize::try_from(messages) == Ok(known.len());
        if self.more || !is_all {
            return Past::Stored;
        }
        known.sort_by_key(|message| message.seq);
        Past::Messages(known)
    }
}

/// True if work may have been done for this job before: it was claimed before, or its engagement has more events than those
/// that it was enqueued, and for whom. Attempts alone do not say: an operator may reset them.
pub(super) fn is_resumed(unit: &Unit, job: &JobRow) -> bool {
    job.attempt > 1
        || unit.engagement_of(job.seq).is_some_and(|row| row.events > 1 + i64::from(row.parent_seq.is_some()))
}

/// Reads the past of those jobs that have one. `broken` is called with a job whose rows cannot be read.
pub(in crate::engine) async fn read(
    session: &mut Session,
    unit: &Unit,
    jobs: impl Iterator<Item = &JobRow>,
    mut broken: impl FnMut(i64, Inconsistency),
) -> Result<HashMap<i64, Done>, StoreError> {
    let resumed = jobs.filter(|job| is_resumed(unit, job));
    let turn = |job: &JobRow| Some(TurnKey { job_seq: job.seq, turn: job.position.as_ref()?.turn });
    let resumed: Vec<TurnKey> = resumed.filter_map(turn).collect();
    if resumed.is_empty() {
        return Ok(HashMap::new());
    }
    let decode = |row: &Row| Ok((get::<i64>(row, "job_seq")?, Done::decode(row)));
    let (action, text) = ("read checkpoints", &sql::SELECT_CHECKPOINTS_OF_TURN);
    let mut all: HashMap<i64, Done> = HashMap::new();
    for (seq, row) in look_by(session, action, text, resumed, &[], decode).await? {
        match row {
            Ok(row) => all.entry(seq).or_default().add(row),
            Err(error) => broken(seq, error),
        }
    }
    Ok(all)
}
