//! The summary that replaces messages beyond the window (OSSA §4 `summarize`, RS-52).
//!
//! It is paid for like an answer: its cost is reserved before the call, and it is durable with its cost
//! before any step relies on it. After a crash the next worker finds it among the messages and does not ask
//! again.

use super::ask::{Answered, ask};
use super::circuit;
use super::request::{self, allowed, bound};
use crate::breakers::Success;
use crate::flow;
use crate::model::ModelRequest;
use crate::model::limits::Pass;
use crate::state::conversation::Overflow;
use crate::state::conversation::line;
use crate::state::{Claimed, Outbox, Stop, Turn, TurnHistory};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use turnstone_domain::JobError;
use turnstone_domain::agent::{OutputContract, ToolChoice};
use turnstone_domain::budget::BudgetMove;
use turnstone_domain::event::{self, EventBody};
use turnstone_domain::message::{Message, Role, Summary};

/// The most tokens of a summary.
const MOST_TOKENS: i64 = 1024;

const TASK: &str = "You sum up the earlier part of a conversation between a user, an assistant and its tools, so that the \
                    assistant can go on without it. Keep facts, numbers, names, decisions, and what is still to be done. \
                    Leave out greetings and how things were found. Answer with the summary only.";

/// Asks for a summary of these messages. If the budget does not allow it, the messages are dropped from the
/// window instead.
///
/// # Errors
/// As the main call of the phase.
pub async fn make(turn: &mut Turn, overflow: Overflow, draining: &CancellationToken) -> Result<(), Stop> {
    let mut request = request(&turn.outbox.claimed, &overflow);
    let Some(allowance) = allowed(&turn.past, &turn.outbox, &request) else {
        turn.past.conversation.forget_before(overflow.until);
        return Ok(());
    };
    request.max_tokens = allowance.max_tokens;
    let bought = buy(turn, request, overflow.messages.len(), draining).await?;
    let content = format!("Summary of the conversation so far: {}", bought.text);
    bought.keep(&mut turn.past, &mut turn.outbox, None, (Role::System, content, overflow.until)).await
}

/// A summary that is paid for and not recorded yet.
struct Bought {
    text: String,
    tokens_in: i64,
    tokens_out: i64,
    pass: Option<Pass>,
    success: Option<Success>,
    blocked: Option<JobError>,
}

/// Asks for a summary of so many messages, and books its cost.
async fn buy(
    turn: &mut Turn,
    mut request: ModelRequest,
    messages: usize,
    draining: &CancellationToken,
) -> Result<Bought, Stop> {
    let bound = bound(&request);
    let Answered { provider, mut answer, pass, afforded, success } =
        ask(turn, &mut request, bound, false, &mut None, draining).await?;
    let used = afforded.book(answer.usage);
    let booked = answer.usage.unwrap_or_default().within(used);
    let (tokens_in, cost) = (booked.input, afforded.cost(answer.usage.map(|_| booked)));
    turn.outbox.book(BudgetMove::Settle { reserved: afforded.tokens, used }, afforded.settled(cost));
    turn.outbox.paid_before = turn.outbox.paid_before.saturating_add(cost);
    let blocked = turn.outbox.screen_answer(&mut answer);
    let tokens_out = used - tokens_in;
    let summary = event::Summary { messages, model: answer.model.clone(), provider, tokens_in, tokens_out };
    turn.outbox.event(&EventBody::HistorySummarized(summary));
    let text = answer.content.unwrap_or_default();
    Ok(Bought { text, tokens_in, tokens_out, pass, success, blocked })
}

impl Bought {
    /// Records the summary as a message of a conversation, durably.
    async fn keep(
        self,
        past: &mut TurnHistory,
        outbox: &mut Outbox,
        thread: Option<String>,
        (role, content, until): (Role, String, i64),
    ) -> Result<(), Stop> {
        let Self { tokens_in, tokens_out, pass, success, blocked, .. } = self;
        let summary = Some(Summary { until, tokens_in, tokens_out });
        past.say_in(outbox, thread, Message { summary, ..Message::text(role, content) });
        let durable = outbox.barrier().await;
        if let Some(pass) = pass {
            outbox
                .claimed
                .deps
                .limits
                .settle(outbox.secured()?, &*outbox.claimed.deps.clock, &pass, tokens_in + tokens_out)
                .await;
        }
        circuit::report(outbox, success).await?;
        durable?;
        blocked.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Makes the summaries that the transforms of an Agent Spec agent are due, each once.
///
/// # Errors
/// As the main call of the phase.
pub async fn transform(turn: &mut Turn, draining: &CancellationToken) -> Result<(), Stop> {
    while let Some(due) = flow::due_summary(turn) {
        let text = format!("{}\n\n{}", due.instructions, due.text);
        let messages = vec![Arc::new(Message::text(Role::User, text))];
        let own = flow::begin_summary(turn, &due);
        let request = ModelRequest {
            messages,
            max_tokens: request::most_tokens(&turn.outbox.claimed).min(MOST_TOKENS),
            ..request::plain_request(&turn.outbox.claimed)
        };
        let bought = match allowed(&turn.past, &turn.outbox, &request) {
            Some(allowance) => {
                let request = ModelRequest { max_tokens: allowance.max_tokens, ..request };
                buy(turn, request, due.messages, draining).await.map(Some)
            }
            None => Ok(None),
        };
        flow::end_summary(turn, own);
        let Some(bought) = bought? else { return Ok(()) };
        let content = bought.text.clone();
        bought
            .keep(&mut turn.past, &mut turn.outbox, Some(due.thread), (Role::User, content, due.until))
            .await?;
    }
    Ok(())
}

fn request(claimed: &Claimed, overflow: &Overflow) -> ModelRequest {
    let said: Vec<String> = overflow.messages.iter().map(|message| line(message)).collect();
    ModelRequest {
        system: TASK.to_owned(),
        messages: vec![Arc::new(Message::text(Role::User, said.join("\n\n")))],
        tools: Vec::new(),
        tool_choice: ToolChoice::None,
        max_tokens: request::most_tokens(claimed).min(MOST_TOKENS),
        output: OutputContract::default(),
        ..request::plain_request(claimed)
    }
}
