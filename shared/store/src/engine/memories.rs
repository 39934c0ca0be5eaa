//! Reads of what agents remember of their users across engagements.

use super::journal;
use super::rows::get;
use super::session::Reader;
use super::views::all;
use crate::{StoreError, sql};
use turnstone_domain::memory::{Exchange, MOST_EXCHANGES};
use turnstone_domain::message::StoredMessage;
use turnstone_domain::{EngagementId, JobId};

/// A job that is remembered, and what of it was read so far.
struct FoundJob {
    job_seq: i64,
    turns: (i64, i64),
    engagement: EngagementId,
    said: Vec<StoredMessage>,
}

/// The part of a row with the first message of a job; the other part is its last message.
const ASKED: i64 = 1;

/// See [`crate::LedgerReads::memories`].
pub(super) async fn of_job(readers: &Reader, job: &JobId, rules: &str) -> Result<Vec<Exchange>, StoreError> {
    let values = [job.as_str().into(), rules.into(), MOST_EXCHANGES.into()];
    let rows = all(readers, "recall what is remembered", &sql::SELECT_MEMORIES_OF_JOB, &values, |row| {
        let turns = (get::<i64>(row, "began")?, get::<i64>(row, "ended")?);
        let engagement = EngagementId(get(row, "engagement_id")?);
        let mut said = journal::messages(row)?.into_iter();
        let said = if get::<i64>(row, "part")? == ASKED { said.next() } else { said.next_back() };
        let said = said.into_iter().collect();
        Ok(FoundJob { job_seq: get(row, "job_seq")?, turns, engagement, said })
    })
    .await?;
    let mut found: Vec<FoundJob> = Vec::new();
    for row in rows {
        match found.last_mut() {
            Some(last) if last.job_seq == row.job_seq => {
                last.said.extend(row.said);
                last.said.dedup_by_key(|stored| stored.seq);
            }
            _ => found.push(row),
        }
    }
    let exchange = |job: FoundJob| Exchange::of(job.engagement, job.turns, &job.said);
    Ok(found.into_iter().filter_map(exchange).collect())
}
