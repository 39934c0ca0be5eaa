//! Tool-retry: a call is set to be made again by the next turn.

use super::super::admission;
use super::{Done, find};
use crate::control::{Refusal, Retried, Target, ToolRetry};
use crate::engine::rows;
use crate::engine::session::{Args, Session};
use crate::engine::statement::{read, read_by};
use crate::engine::unit::Unit;
use crate::{Ring, StoreError, sql};
use serde_json::Value;
use turnstone_domain::JobState;
use turnstone_domain::event::{EventBody, RepeatedCall};
use turnstone_domain::review::{Review, ReviewKind, ReviewState};
use turnstone_domain::tool_call::{ToolCall, ToolCallState};

/// How often a call may be asked to be made again when the job does not say.
const ATTEMPTS: i64 = 3;

pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    target: &Target,
    retry: &ToolRetry,
) -> Done<Retried> {
    let seq = match find(session, unit, target).await? {
        Ok(seq) => seq,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let state = unit.job(seq).map_or(JobState::Available, |job| job.state);
    if state.is_terminal() {
        return Ok(Err(Refusal::Ended(state)));
    }
    let policy = policy(session, seq).await?;
    let values = [seq.into(), retry.call.as_str().into()];
    let requested =
        read(session, "count tool retries", &sql::SELECT_REQUESTED_TOOL_RETRIES, &values, |row| {
            rows::get::<i64>(row, "attempts")
        });
    let attempt = requested.await?.pop().unwrap_or(0) + 1;
    if attempt > policy.most {
        return Ok(Err(Refusal::TooOften { most: policy.most }));
    }
    if retry.use_alternate && policy.alternate.is_none() {
        return Ok(Err(Refusal::NoAlternate(None)));
    }
    let alternate = policy.alternate.filter(|_| retry.use_alternate);
    let provider = if unit.engagement_of(seq).is_some() {
        match set(session, unit, seq, retry, alternate.as_deref()).await? {
            Ok(name) => Some(name),
            Err(refusal) => return Ok(Err(refusal)),
        }
    } else {
        alternate
    };
    session.execute("count tool retries", &sql::INSERT_TOOL_RETRIES, Args::Values(&values)).await?;
    let (tool_call_id, error) = (retry.call.clone(), retry.error.clone());
    let repeated = RepeatedCall { tool_call_id, error, provider: provider.clone(), attempt };
    unit.note(seq, EventBody::ToolRetried(repeated), target.at)?;
    let token = unit.job(seq).and_then(|job| job.lease_token.clone());
    unit.rings.extend(token.map(Ring::Asked));
    unit.flush(session).await?;
    Ok(Ok(Retried { provider, attempt }))
}

/// The permissions of the job: `ext_agent_v2.tool_retry`.
struct Policy {
    most: i64,
    alternate: Option<String>,
}

async fn policy(session: &mut Session, seq: i64) -> Result<Policy, StoreError> {
    let keys = vec![seq];
    let sent = read_by(session, "read envelopes", &sql::SELECT_ENVELOPES_BY_JOB, keys, |row| {
        let extra: Value = rows::json(row, "extra")?;
        Ok(extra.pointer("/ext_agent_v2/tool_retry").cloned().unwrap_or_default())
    });
    let said = sent.await?.pop().unwrap_or_default();
    Ok(Policy {
        most: said["max_attempts"].as_i64().filter(|most| *most >= 0).unwrap_or(ATTEMPTS),
        alternate: said["alternate_provider"].as_str().map(str::to_owned),
    })
}

/// Sets a journalled call to be made again; returns the name of the tool that will be called.
async fn set(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    retry: &ToolRetry,
    alternate: Option<&str>,
) -> Done<String> {
    let (action, values) = ("read the tool journal", [seq.into()]);
    let journal =
        read(session, action, &sql::SELECT_TOOL_CALLS_OF_JOB, &values, rows::decode::<ToolCall>).await?;
    let Some(call) = journal.into_iter().find(|call| call.call_id == retry.call) else {
        return Ok(Err(Refusal::NoCall));
    };
    let in_flight =
        call.state == ToolCallState::Sent && unit.job(seq).is_some_and(|job| job.lease_token.is_some());
    let values = [seq.into(), retry.call.as_str().into()];
    let action = "look for an open delegation of a call";
    let answering =
        read(session, action, &sql::SELECT_OPEN_DELEGATION, &values, |row| rows::get::<i64>(row, "job_seq"))
            .await?;
    if call.state == ToolCallState::Planned || in_flight || !answering.is_empty() {
        return Ok(Err(Refusal::NotMade));
    }
    if let Some(name) = alternate
        && !has_tool(session, unit, seq, name).await?
    {
        return Ok(Err(Refusal::NoAlternate(Some(name.to_owned()))));
    }
    if !retry.approved && !may_repeat(session, unit, seq, &call).await? {
        return Ok(Err(Refusal::NotIdempotent));
    }
    let values = [seq.into(), retry.call.as_str().into(), alternate.into()];
    session
        .execute("set a call to be made again", &sql::UPDATE_REPEATED_TOOL_CALL, Args::Values(&values))
        .await?;
    session
        .execute(
            "ask the worker to make a call again",
            &sql::UPDATE_JOB_CALLS_AGAIN,
            Args::Values(&[seq.into()]),
        )
        .await?;
    Ok(Ok(alternate.map_or(call.name, str::to_owned)))
}

/// Returns true when a call may be made again without an approval: it is idempotent, it never had an effect, or a
/// reviewer has allowed one more request.
async fn may_repeat(
    session: &mut Session,
    unit: &Unit,
    seq: i64,
    call: &ToolCall,
) -> Result<bool, StoreError> {
    let refused = call.outcome.as_ref().is_some_and(|outcome| !outcome.was_invoked());
    if call.idempotent || refused {
        return Ok(true);
    }
    let Some(job) = unit.job(seq) else { return Ok(false) };
    let values = [job.id.as_str().into(), call.turn.into()];
    let reviews =
        read(session, "read reviews", &sql::SELECT_REVIEWS_OF_TURN, &values, rows::decode::<Review>).await?;
    let approved = reviews.iter().filter(|review| {
        review.call_id == call.call_id
            && review.kind == ReviewKind::UnknownOutcome
            && review.state == ReviewState::Approved
            // One that reports a result has allowed no request.
            && review.reported.is_none()
    });
    Ok(i64::try_from(approved.count()).unwrap_or(0) >= call.sends - call.retries)
}

async fn has_tool(session: &mut Session, unit: &Unit, seq: i64, name: &str) -> Result<bool, StoreError> {
    let Some(row) = unit.engagement_of(seq) else { return Ok(false) };
    let found = admission::by_digest(session, &row.digest).await?;
    Ok(found.is_some_and(|agent| agent.capability(name).is_some()))
}
