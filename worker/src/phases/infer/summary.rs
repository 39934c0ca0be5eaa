//! The summary that replaces messages beyond the window (OSSA §4 `summarize`, RS-52).
//!
//! It is paid for like an answer: its cost is reserved before the call, and it is durable with its cost
//! before any step relies on it. After a crash the next worker finds it among the messages and does not ask
//! again.

use super::ask::{Answered, ask};
use super::{allowed, bound, circuit};
use crate::model::ModelRequest;
use crate::turn::conversation::Overflow;
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use turnstone_domain::EventName;
use turnstone_domain::agent::{OutputContract, ToolChoice};
use turnstone_domain::budget::BudgetMove;
use turnstone_domain::message::{Message, Role, Summary};

/// The most tokens of a summary.
const MOST_TOKENS: i64 = 1024;

const TASK: &str = "You sum up the earlier part of a conversation between a user, an assistant and its tools, so that the \
                    assistant can go on without it. Keep facts, numbers, names, decisions, and what is still to be done. \
                    Leave out greetings and how things were found. Answer with the summary only.";

/// Asks for a summary when one is due. If the budget does not allow it, the messages are dropped from the
/// window instead.
///
/// # Errors
/// As the main call of the phase.
pub async fn make(turn: &mut Turn, draining: &CancellationToken) -> Result<(), Stop> {
    let Some(overflow) = turn.conversation.overflow(&turn.agent.memory) else { return Ok(()) };
    let mut request = request(turn, &overflow);
    let Some(allowance) = allowed(turn, &request) else {
        turn.conversation.forget_before(overflow.until);
        return Ok(());
    };
    request.max_tokens = allowance.max_tokens;
    let bound = bound(&request);
    let Answered { provider, mut answer, pass, afforded, success } =
        ask(turn, &mut request, bound, false, &mut None, draining).await?;
    let used = afforded.book(answer.usage);
    let booked = answer.usage.unwrap_or_default().within(used);
    let (tokens_in, cost) = (booked.input, afforded.cost(answer.usage.map(|_| booked)));
    turn.book(BudgetMove::Settle { reserved: afforded.tokens, used }, afforded.settled(cost));
    turn.paid_before = turn.paid_before.saturating_add(cost);
    let blocked = turn.screen_answer(&mut answer);
    let facts = json!({"messages": overflow.messages.len(), "model": answer.model, "provider": provider,
                       "tokens_in": tokens_in, "tokens_out": used - tokens_in});
    turn.event(EventName::HistorySummarized, facts);
    let text = format!("Summary of the conversation so far: {}", answer.content.unwrap_or_default());
    let summary = Some(Summary { until: overflow.until, tokens_in, tokens_out: used - tokens_in });
    turn.say(Message { summary, ..Message::text(Role::System, text) });
    let durable = turn.barrier().await;
    if let Some(pass) = pass {
        turn.deps.limits.settle(turn.secured()?, &*turn.deps.clock, &pass, used).await;
    }
    circuit::report(turn, success).await?;
    durable?;
    blocked.map_or(Ok(()), |error| Err(error.into()))
}

fn request(turn: &Turn, overflow: &Overflow) -> ModelRequest {
    let said: Vec<String> = overflow.messages.iter().map(line).collect();
    ModelRequest {
        system: TASK.to_owned(),
        messages: vec![Message::text(Role::User, said.join("\n\n"))],
        tools: Vec::new(),
        tool_choice: ToolChoice::None,
        max_tokens: super::most_tokens(turn).min(MOST_TOKENS),
        output: OutputContract::default(),
        ..super::plain_request(turn)
    }
}

/// Returns a message as a line of the transcript.
fn line(message: &Message) -> String {
    let who = match message.role {
        Role::User => "User",
        Role::System => "Note",
        Role::Assistant => "Assistant",
        Role::Tool => "Tool",
    };
    let calls =
        message.tool_calls.iter().map(|call| format!(" [calls {} with {}]", call.name, call.arguments));
    format!("{who}: {}{}", message.content, calls.collect::<String>())
}
