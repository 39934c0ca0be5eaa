//! How an answer ended, where that alone decides: one that was cut, or withheld, is no result whatever its form.

use super::state::Turn;
use crate::model::FinishReason;
use crate::phases::infer::InferBody;
use turnstone_domain::JobError;
use turnstone_domain::agent::ToolChoice;
use turnstone_domain::error::FailureKind;

/// Why the answer is no result, if that is so. Asking again would end the same.
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

/// Whether a call is still demanded before the answer (agent extension §2.2).
pub fn lacks_call(turn: &Turn) -> bool {
    turn.agent.tool_choice == ToolChoice::Required && turn.position.tool_turns == 0
}

/// What stands against an answer that the model was asked for twice.
pub fn hopeless(turn: &Turn, why: &str) -> JobError {
    if lacks_call(turn) {
        let message = format!("the model answers without calling a tool, also when asked again: {why}");
        return JobError::new(FailureKind::Model, message);
    }
    let message = format!("the model's answer has not the demanded form, also when asked again: {why}");
    JobError::new(FailureKind::OutputSchema, message)
}
