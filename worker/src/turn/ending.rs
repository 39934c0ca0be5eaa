//! The endings of an answer that decide alone: a cut or withheld answer is no result in any form.

use crate::model::FinishReason;
use crate::state::Turn;
use crate::state::bodies::InferBody;
use turnstone_domain::JobError;
use turnstone_domain::agent::ToolChoice;
use turnstone_domain::error::FailureKind;

/// Returns the reason why the answer is no result, if there is one. Another request would end in the same
/// way.
pub fn unusable(infer: &InferBody) -> Option<JobError> {
    let model = &infer.model;
    match infer.finish_reason {
        FinishReason::Length => {
            let message = format!(
                "the answer of {model} was cut after {} tokens, the most that one answer may have; \
                 raise ext_agent_max_tokens, maxTokens or max_tokens_per_turn of the agent, or [models] max_tokens",
                infer.tokens_out
            );
            Some(JobError::new(FailureKind::MaxTokens, message).with("tokens", infer.tokens_out))
        }
        FinishReason::ContentFilter => {
            let message =
                format!("the provider {} withheld the answer of {model} (content filter)", infer.provider);
            Some(JobError::new(FailureKind::ContentFiltered, message))
        }
        FinishReason::Stop | FinishReason::ToolUse => None,
    }
}

/// Returns true if the model must still call a tool before its answer (agent extension §2.2).
pub fn lacks_call(turn: &Turn) -> bool {
    turn.claimed.agent.tool_choice == ToolChoice::Required && turn.outbox.position.tool_turns == 0
}

/// Returns the error of an answer that was rejected twice.
pub fn hopeless(turn: &Turn, why: &str) -> JobError {
    if lacks_call(turn) {
        let message = format!("the model answers without calling a tool, also when asked again: {why}");
        return JobError::new(FailureKind::Model, message);
    }
    let message = format!("the model's answer has not the demanded form, also when asked again: {why}");
    JobError::new(FailureKind::OutputSchema, message)
}
