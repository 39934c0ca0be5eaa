//! `turn_chain.confirm_between_turns`: the user confirms the next turn (OSSA §4).
//!
//! The question is one to the user, as `ask_user` asks them, so every protocol shows it and takes the answer.
//! Its row in the journal is a note about the first call of the turn. The user of an agent behind an output
//! guardrail sees nothing of its delegates (OAS-43); there the operators are asked.

use super::{escalation, exposes};
use crate::state::{Outbox, Stop, TurnHistory};
use serde_json::json;
use turnstone_domain::error::FailureKind;
use turnstone_domain::question::{APPROVE, AskedUser, CONFIRMS_TURN, Question, TOOLS, agreement};
use turnstone_domain::tool_call::{ToolCall, ToolCallMove, ToolOutcome};
use turnstone_domain::{CallId, JobError, Wait};

/// The place of the note among the calls of its turn: behind all others.
const PLACE: i64 = 1_000_000;

/// Returns once the user has confirmed that another turn may follow the current one.
///
/// # Errors
/// [`Stop::Park`] until there is an answer, [`Stop::Fail`] after a no.
pub fn confirmed(past: &TurnHistory, outbox: &mut Outbox) -> Result<(), Stop> {
    if !outbox.claimed.agent.chain.confirm_between_turns {
        return Ok(());
    }
    if outbox.claimed.agent.guardrails.for_guarded {
        return escalation::confirmed(past, outbox);
    }
    let Some(call) = past.conversation.answer().and_then(|answer| answer.tool_calls.first()).cloned() else {
        return Ok(());
    };
    let requested = past.recalled_calls.iter().find(|row| is_confirmation(row, &call.call_id));
    if let Some(ToolOutcome::Success { output }) = requested.and_then(|row| row.outcome.as_ref()) {
        return match agreement(&output[APPROVE]) {
            Some(true) => Ok(()),
            Some(false) | None => Err(refused(outbox).into()),
        };
    }
    let call_id = requested.map(|row| row.call_id.clone());
    let is_known = call_id.is_some();
    let call_id = call_id.unwrap_or_else(|| past.next_note(&call.call_id).1);
    let prompt = format!(
        "Turn {} of {} has called {}. May the next turn begin? true or false",
        outbox.position.turn,
        outbox.claimed.agent.name,
        called(past)
    );
    let input = json!({"request_keys": {APPROVE: prompt}, CONFIRMS_TURN: outbox.position.turn});
    let question = Question::read(&input)
        .map_err(|why| JobError::new(FailureKind::Internal, format!("the question is none: {why}")))?;
    if !is_known {
        let intent = ToolCallMove::Intend {
            call_id: call_id.clone(),
            turn: outbox.position.turn,
            position: PLACE,
            name: TOOLS[0].to_owned(),
            input,
            idempotent: true,
            sent: false,
        };
        outbox.pending.tool_calls.push(intent);
    }
    let exposes = exposes::now(&outbox.claimed, past);
    Err(Stop::Park(Box::new(Wait::Input(AskedUser { call_id, question, exposes }))))
}

fn is_confirmation(row: &ToolCall, call: &CallId) -> bool {
    ToolCall::note_number(&row.call_id, call).is_some() && row.input.get(CONFIRMS_TURN).is_some()
}

fn called(past: &TurnHistory) -> String {
    let calls = past.conversation.answer().map(|answer| answer.tool_calls.as_slice()).unwrap_or_default();
    calls.iter().map(|call| format!("`{}`", call.name)).collect::<Vec<_>>().join(", ")
}

/// Returns the failure of a job whose user ended it. It is final.
fn refused(outbox: &Outbox) -> JobError {
    let message = format!("the user refused the turn after turn {}", outbox.position.turn);
    JobError::new(FailureKind::Policy, message).for_good()
}
