//! An answer of a user: it becomes the outcome of the call that asked, and the parked job becomes available.

use super::super::questions::given;
use super::super::rows;
use super::super::session::{Args, Session};
use super::super::statement::read;
use super::super::unit::Unit;
use crate::{AnswerOutcome, NewAnswer, Ring, StoreError, sql};
use serde_json::{Map, Value};
use turnstone_domain::JobState;
use turnstone_domain::event::{EventBody, Reason, UserReply};
use turnstone_domain::question::{Question, is_one};
use turnstone_domain::state::Trigger;
use turnstone_domain::tool_call::{ToolCall, ToolCallMove, ToolOutcome};

/// Answers the question that a job waits with. One answer counts; the same once more changes nothing and is no mistake. An
/// answer is for the question that it names, and never for the one that is asked by then.
pub(in super::super) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    answer: &NewAnswer,
) -> Result<AnswerOutcome, StoreError> {
    let Some(seq) = unit.read_job(session, &answer.job, answer.tenant.as_deref()).await? else {
        return Ok(AnswerOutcome::NotFound);
    };
    if let Some(known) = by_key(session, unit, seq, answer).await? {
        return Ok(known);
    }
    let Some(job) = unit.job(seq) else { return Ok(AnswerOutcome::NotFound) };
    let asks = job.position.as_ref().and_then(|position| position.asks.clone());
    let asks = asks.filter(|id| job.state == JobState::Pending && *id == answer.call);
    let values = [seq.into(), answer.call.as_str().into()];
    let action = "read what a job asked";
    let call =
        read(session, action, &sql::SELECT_QUESTION_OF_JOB, &values, rows::decode::<ToolCall>).await?.pop();
    // Only what asks its user is answered so.
    let call = call.filter(|call| is_one(&call.name));
    let Some(open) = call.as_ref().filter(|call| Some(&call.call_id) == asks.as_ref()) else {
        return Ok(repeated(call.as_ref(), answer));
    };
    let Ok(question) = Question::read(&open.input) else { return Ok(AnswerOutcome::NotWaiting) };
    let output = match question.answered(&answer.values) {
        Ok(output) => output,
        Err(unanswered) => return Ok(AnswerOutcome::Refused(unanswered)),
    };
    let call_id = open.call_id.clone();
    let keys: Vec<String> =
        output.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
    let duration_ms = answer.at.since(open.created_at).max(0);
    let outcome = ToolOutcome::Success { output };
    let settled = ToolCallMove::Settle {
        call_id: call_id.clone(),
        outcome,
        handled: None,
        duration_ms,
        withheld: false,
    };
    unit.tool_call(seq, &settled, answer.at)?;
    let job = unit.change_job(seq)?;
    if let Some(position) = &mut job.position {
        position.asks = None;
    }
    job.step(Trigger::Activate, answer.at)?;
    let (by, message_id) = (answer.by.clone(), answer.message.clone());
    unit.note(
        seq,
        EventBody::InputReceived(UserReply { call_id: call_id.clone(), keys, by, message_id }),
        answer.at,
    )?;
    unit.note(seq, EventBody::JobAvailable(Reason::of("input")), answer.at)?;
    unit.rings.push(Ring::Available);
    unit.flush(session).await?;
    if let Some(key) = &answer.key {
        let values = [call_id.as_str().into(), key.as_str().into()];
        session.execute("remember an answer's key", &sql::UPDATE_ANSWER_KEY, Args::Values(&values)).await?;
    }
    Ok(AnswerOutcome::Answered(call_id))
}

/// Returns the outcome of an answer whose key was used before, in any job of the engagement.
async fn by_key(
    session: &mut Session,
    unit: &Unit,
    seq: i64,
    answer: &NewAnswer,
) -> Result<Option<AnswerOutcome>, StoreError> {
    let (Some(key), Some(row)) = (&answer.key, unit.engagement_of(seq)) else { return Ok(None) };
    let values = [row.engagement.id.as_str().into(), key.as_str().into()];
    let known = read(session, "look for an answer", &sql::SELECT_GIVEN_ANSWER, &values, given).await?.pop();
    Ok(known.map(|known| match says(&known.values, &answer.values) {
        true => AnswerOutcome::Repeated(known.call),
        false => AnswerOutcome::Different,
    }))
}

/// Returns the outcome of an answer to a job that does not wait for it: a repetition, a different answer, or none
/// before.
fn repeated(call: Option<&ToolCall>, answer: &NewAnswer) -> AnswerOutcome {
    let Some(call) = call else { return AnswerOutcome::NotWaiting };
    match &call.outcome {
        Some(ToolOutcome::Success { output: Value::Object(counted) }) if says(counted, &answer.values) => {
            AnswerOutcome::Repeated(call.call_id.clone())
        }
        Some(ToolOutcome::Success { .. }) => AnswerOutcome::Different,
        _ => AnswerOutcome::NotWaiting,
    }
}

/// Returns true when an answer equals the one that counted; other keys do not matter.
fn says(counted: &Map<String, Value>, given: &Map<String, Value>) -> bool {
    counted.iter().all(|(key, value)| given.get(key) == Some(value))
}
