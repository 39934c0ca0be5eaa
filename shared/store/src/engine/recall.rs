//! The reads of a turn's past: messages, calls, reviews, state.

use super::rows::{self, Fields, Inconsistency, get, json};
use super::session::Reader;
use super::views::{all, one};
use super::{delegations, forks, journal};
use crate::sql;
use crate::{Recall, StoreError};
use serde_json::Value;
use turnstone_domain::message::StoredMessage;
use turnstone_domain::review::{Review, ReviewAnswer};
use turnstone_domain::session_state::{Scope, StateEntry, StateSnapshot};
use turnstone_domain::{EngagementId, JobId, Phase, Timestamp};

/// The state of a scope (see [`crate::LedgerReads::state`]): version and keys of one moment, because it is one statement.
pub(super) async fn state(
    readers: &Reader,
    scope: &Scope,
    now: Timestamp,
) -> Result<StateSnapshot, StoreError> {
    let values = [scope.name.as_str().into(), now.0.into()];
    let found = all(readers, "read a state", &sql::SELECT_STATE_OF_SCOPE, &values, |row| {
        let key = match get::<Option<String>>(row, "name")? {
            None => None,
            Some(key) => Some(StateEntry {
                key,
                value: json(row, "content")?,
                version: get(row, "version")?,
                updated_at: get(row, "updated_at")?,
                expires_at: get(row, "expires_at")?,
            }),
        };
        Ok((get::<i64>(row, "scope_version")?, key))
    })
    .await?;
    Ok(StateSnapshot {
        version: found.first().map_or(0, |(version, _)| *version),
        entries: found.into_iter().filter_map(|(_, key)| key).collect(),
    })
}

/// The parts of its past that a job has. Most jobs that are resumed have messages alone.
#[derive(Default)]
struct Parts {
    calls: bool,
    reviews: bool,
    delegations: bool,
    fork: bool,
}

impl Parts {
    fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        Ok(Self {
            calls: get(row, "calls")?,
            reviews: get(row, "reviews")?,
            delegations: get(row, "delegations")?,
            fork: get(row, "fork")?,
        })
    }
}

/// Reads the bodies of the checkpoints of a phase of a job in these turns, oldest first.
pub(super) async fn bodies_of(
    readers: &Reader,
    job: &JobId,
    phase: Phase,
    (from, until): (i64, i64),
) -> Result<Vec<Value>, StoreError> {
    let number = i64::try_from(phase.index()).unwrap_or(i64::MAX);
    let values = [job.as_str().into(), from.into(), until.into(), number.into()];
    let (action, text) = ("read checkpoints", &sql::SELECT_CHECKPOINTS_OF_PHASE_OF_JOB);
    let found = all(readers, action, text, &values, journal::checkpoints).await?;
    let of_phase = found.into_iter().flatten().filter(|checkpoint| checkpoint.phase == phase);
    Ok(of_phase.map(|checkpoint| checkpoint.body).collect())
}

/// See [`super::views::Views::messages`].
pub(super) async fn messages_after(
    readers: &Reader,
    id: &EngagementId,
    mut after: i64,
    limit: usize,
) -> Result<Vec<StoredMessage>, StoreError> {
    let mut found = Vec::new();
    loop {
        let missing = i64::try_from(limit - found.len()).unwrap_or(i64::MAX);
        let upto = after.saturating_add(missing);
        let values = [id.as_str().into(), after.into(), missing.into()];
        let rows = all(readers, "read messages", &sql::SELECT_MESSAGES_AFTER, &values, |row| {
            Ok((get::<i64>(row, "last_message")?, journal::messages(row)?))
        })
        .await?;
        let reached = rows.last().map_or(after, |(last, _)| *last);
        let wanted = |stored: &StoredMessage| (after + 1..=upto).contains(&stored.seq);
        found.extend(rows.into_iter().flat_map(|(_, said)| said).filter(wanted));
        // Positions have no gaps: a page that ends before its last position is the last one.
        if found.len() >= limit || reached < upto {
            return Ok(found);
        }
        after = upto;
    }
}

/// Reads what an engagement remembers (see [`crate::LedgerReads::recall`]).
pub(super) async fn recall(
    readers: &Reader,
    job: &JobId,
    turn: i64,
    window: u32,
    whole_journal: bool,
) -> Result<Recall, StoreError> {
    let values = [job.as_str().into(), window.into()];
    let newest =
        all(readers, "recall messages", &sql::SELECT_NEWEST_MESSAGES, &values, journal::messages).await?;
    let mut messages: Vec<StoredMessage> = newest.into_iter().flatten().collect();
    messages.drain(..messages.len().saturating_sub(window as usize));
    // The input can only be missing from a window that is full.
    let mut input = None;
    if !messages.is_empty() && messages.len() >= window as usize {
        let values = [job.as_str().into()];
        let said =
            one(readers, "recall the input", &sql::SELECT_INPUT_MESSAGE, &values, journal::messages).await?;
        input = said.and_then(|said| said.into_iter().next());
        input = input.filter(|input| messages.first().is_some_and(|oldest| oldest.seq > input.seq));
    }
    let mut recall = Recall { messages, input, ..Recall::default() };
    let from = if whole_journal { 0 } else { turn };
    let values = [job.as_str().into(), from.into()];
    let parts =
        one(readers, "look what there is to recall", &sql::SELECT_RECALL_PARTS, &values, Parts::decode);
    let parts = parts.await?.unwrap_or_default();
    if parts.calls {
        let (action, text) = ("recall the tool journal", &sql::SELECT_TOOL_CALLS_FROM_TURN);
        recall.tool_calls = all(readers, action, text, &values, rows::decode).await?;
    }
    if parts.reviews {
        let values = [job.as_str().into(), turn.into()];
        let reviews =
            all(readers, "recall reviews", &sql::SELECT_REVIEWS_OF_TURN, &values, rows::decode::<Review>)
                .await?;
        recall.reviews = reviews.into_iter().map(ReviewAnswer::from).collect();
    }
    if parts.delegations {
        recall.delegations = delegations::of_turn(readers, job, turn).await?;
    }
    if parts.fork {
        recall.fork = forks::recorded(readers, job).await?;
    }
    Ok(recall)
}
