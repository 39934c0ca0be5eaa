//! Engagements that continue from a turn of another one, whose past they share.

use super::rows::{self, Fields, Inconsistency, get, json};
use super::session::Reader;
use super::views::{all, one};
use super::{Engine, journal, ops};
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::fork::{ForkChanges, ForkPoint, Origin, Recorded, RecordedCall, RecordedCheck};
use turnstone_domain::review::{ReviewAnswer, ReviewKind, ReviewState};
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{CallId, EngagementId, EventName, JobId, Phase, Timestamp, digest};

/// A fork that is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct NewFork {
    /// The engagement that it comes from.
    pub from: EngagementId,
    /// Finds only an engagement of this tenant; `None` means any tenant.
    pub tenant: Option<String>,
    /// Where they part.
    pub point: ForkPoint,
    /// The differences from the original.
    pub changes: ForkChanges,
    /// True when its tools are called; otherwise it reuses the recorded outcomes.
    pub live_tools: bool,
    /// The id of its engagement.
    pub engagement: EngagementId,
    /// The id of its job.
    pub job: JobId,
    /// The identity of the principal, which submits it; `None` when it has none.
    pub by: Option<String>,
    /// Now.
    pub at: Timestamp,
}

/// Why there is no fork.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ForkRefusal {
    /// There is no such engagement.
    NoEngagement,
    /// The engagement had several inputs; a fork has one job for its whole past.
    SeveralInputs,
    /// The engagement has not come as far as this turn.
    NoTurn {
        /// The newest turn that it can be forked at.
        newest: i64,
    },
    /// The turn has not come as far as this phase.
    NoPhase {
        /// The furthest phase of this turn that it can be forked at.
        furthest: Phase,
    },
    /// It has no call of this id whose outcome is known.
    NoCall(String),
    /// The call was made before the point where they part.
    CallBefore {
        /// The call.
        call: String,
        /// Its turn.
        turn: i64,
    },
    /// A model's provider was named, and the agent names no model.
    NoModel,
}

/// Engagements that continue from a turn of another one, whose past they share.
#[derive(Clone)]
pub struct Forks(pub(super) Arc<Engine>);

impl Forks {
    /// Makes a fork: an engagement and a job of its own, with a budget of its own. It continues from the point,
    /// with the changes applied. The original engagement stays as it is.
    #[boxed]
    pub async fn fork(&self, fork: NewFork) -> Result<Result<(), ForkRefusal>, StoreError> {
        self.0
            .write(fork, |tx, fork| Box::pin(ops::fork::apply(&mut tx.session, &mut tx.unit, fork, &*tx.ids)))
            .await
    }

    /// Where the engagement of a job was forked from; `None` for one that is no fork.
    #[boxed]
    pub async fn origin(&self, job: &JobId) -> Result<Option<Origin>, StoreError> {
        origin(&self.0.readers, job).await
    }
}

/// Where the engagement of a job was forked from.
pub(super) async fn origin(readers: &Reader, job: &JobId) -> Result<Option<Origin>, StoreError> {
    let values = [job.as_str().into()];
    one(readers, "look for a fork", &sql::SELECT_FORK_OF_JOB, &values, rows::origin).await
}

/// Recorded calls whose arguments are read at once.
const CALLS: u32 = 32;

/// Returns the origin with the recorded outcomes that replace calls, unless every call is made again.
pub(super) async fn recorded(
    readers: &Reader,
    job: &JobId,
) -> Result<Option<(Origin, Recorded)>, StoreError> {
    let Some(origin) = origin(readers, job).await? else { return Ok(None) };
    let set = &origin.changes.tool_results;
    if origin.live_tools && set.is_empty() {
        return Ok(Some((origin, Recorded::default())));
    }
    let mut calls: Vec<RecordedCall> = Vec::new();
    for offset in (0_u32..).step_by(CALLS as usize) {
        let values = [job.as_str().into(), CALLS.into(), offset.into()];
        let page = all(readers, "read the record of a fork", &sql::SELECT_FORK_RECORD, &values, call).await?;
        let is_last = page.len() < CALLS as usize;
        calls.extend(page);
        if is_last {
            break;
        }
    }
    let values = [job.as_str().into()];
    let used = all(readers, "read the stubs of a job", &sql::SELECT_STUBS_OF_JOB, &values, |row| {
        get::<String>(row, "of_call").map(CallId)
    });
    let used = used.await?.into_iter().collect();
    if origin.live_tools {
        calls.retain(|call| set.contains_key(call.call_id.as_str()));
    }
    let mut recorded = Recorded::of(calls);
    recorded.used = used;
    if origin.live_tools {
        return Ok(Some((origin, recorded)));
    }
    let text = &sql::SELECT_FORK_CHECKS;
    let found = all(readers, "read what guardrails came to", text, &values, journal::events).await?;
    // The newest row comes first, and so does its newest event.
    let reported = found.iter().flat_map(|events| events.iter().rev());
    let checks = reported.filter(|event| event.name == EventName::GuardrailChecked);
    recorded.checks = checks.filter_map(|event| RecordedCheck::of_event(event.turn, &event.data)).collect();
    recorded.reviews =
        all(readers, "read what was decided", &sql::SELECT_FORK_REVIEWS, &values, review).await?;
    Ok(Some((origin, recorded)))
}

/// One of the recorded calls.
pub(super) async fn recorded_call(
    readers: &Reader,
    job: &JobId,
    call: &CallId,
) -> Result<Option<ToolCall>, StoreError> {
    let values = [job.as_str().into(), call.as_str().into()];
    one(readers, "read a recorded call", &sql::SELECT_FORK_CALL, &values, rows::decode).await
}

fn call(row: &impl Fields) -> Result<RecordedCall, Inconsistency> {
    Ok(RecordedCall {
        call_id: CallId(get(row, "call_id")?),
        name: get(row, "name")?,
        arguments_hash: digest::of_json(&json(row, "input")?),
        stub_of: get::<Option<String>>(row, "stub_of")?.map(CallId),
    })
}

fn review(row: &impl Fields) -> Result<ReviewAnswer, Inconsistency> {
    Ok(ReviewAnswer {
        call_id: CallId(get(row, "call_id")?),
        kind: get::<ReviewKind>(row, "kind")?,
        arguments_hash: get(row, "arguments_hash")?,
        state: get::<ReviewState>(row, "state")?,
        decided_by: get(row, "decided_by")?,
        reason: get(row, "reason")?,
        // The call has its outcome on record.
        reported: None,
    })
}
