//! The summary that replaces messages beyond the window (OSSA §4 `summarize`, RS-52).
//!
//! It is paid for like an answer: its cost is reserved before the call, and it is durable with its cost
//! before any step relies on it. After a crash the next worker finds it among the messages and does not ask
//! again.

use super::ask::{Answered, Prepared, Receipt};
use super::booking;
use super::overflow::ask;
use super::request::{self, allowed};
use crate::flow;
use crate::flow::run::FlowRun;
use crate::model::{ModelRequest, Usage};
use crate::state::conversation::Overflow;
use crate::state::conversation::line;
use crate::state::{Claimed, Outbox, Stop, TurnHistory};
use std::sync::Arc;
use turnstone_domain::JobError;
use turnstone_domain::agent::ToolChoice;
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
pub async fn make(
    past: &mut TurnHistory,
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
    overflow: Overflow,
) -> Result<(), Stop> {
    let mut request = request(&outbox.claimed, &overflow);
    let Some(allowance) = allowed(past, outbox, &request) else {
        past.conversation.forget_before(overflow.until);
        return Ok(());
    };
    request.max_tokens = allowance.max_tokens;
    let bought = buy(outbox, flow, request, overflow.messages.len()).await?;
    let content = format!("Summary of the conversation so far: {}", bought.text);
    bought.keep(past, outbox, None, (Role::System, content, overflow.until)).await
}

/// A summary that is paid for and not recorded yet.
struct Bought {
    text: String,
    tokens_in: i64,
    tokens_out: i64,
    receipt: Receipt,
    blocked: Option<JobError>,
}

/// Asks for a summary of so many messages, and books its cost.
async fn buy(
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
    request: ModelRequest,
    messages: usize,
) -> Result<Bought, Stop> {
    let Answered { provider, mut answer, afforded, receipt } =
        ask(outbox, flow, &mut Prepared::of(request, false)).await?;
    let booked = booking::book(outbox, &provider, &afforded, &answer);
    let (Usage { input: tokens_in, output: tokens_out, .. }, cost) = (booked.usage, booked.cost);
    let settled = BudgetMove::Settle { reserved: afforded.tokens, used: booked.tokens() };
    outbox.book(settled, afforded.settled(cost));
    outbox.paid_before = outbox.paid_before.saturating_add(cost);
    let blocked = outbox.screen_answer(&mut answer);
    let (model, estimated) = (answer.model.clone(), booked.estimated.then_some(true));
    let summary = event::Summary { messages, model, provider, tokens_in, tokens_out, estimated };
    outbox.event(&EventBody::HistorySummarized(summary));
    let text = answer.content.unwrap_or_default();
    Ok(Bought { text, tokens_in, tokens_out, receipt, blocked })
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
        let Self { tokens_in, tokens_out, receipt, blocked, .. } = self;
        let summary = Some(Summary { until, tokens_in, tokens_out });
        past.say_in(outbox, thread, Message { summary, ..Message::text(role, content) });
        let durable = outbox.barrier().await;
        receipt.report(outbox, tokens_in + tokens_out).await?;
        durable?;
        blocked.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Makes the summaries that the transforms of an Agent Spec agent are due, each once.
///
/// # Errors
/// As the main call of the phase.
pub async fn transform(past: &mut TurnHistory, outbox: &mut Outbox, run: &mut FlowRun) -> Result<(), Stop> {
    while let Some(due) = flow::due_summary(&outbox.claimed, past, run.crew.as_ref()) {
        let text = format!("{}\n\n{}", due.instructions, due.text);
        let messages = vec![Arc::new(Message::text(Role::User, text))];
        let own = flow::begin_summary(&mut outbox.claimed, run, &due);
        let request = ModelRequest { messages, ..summary_request(&outbox.claimed) };
        let bought = match allowed(past, outbox, &request) {
            Some(allowance) => {
                let request = ModelRequest { max_tokens: allowance.max_tokens, ..request };
                buy(outbox, Some(run), request, due.messages).await.map(Some)
            }
            None => Ok(None),
        };
        flow::end_summary(&mut outbox.claimed, run, own);
        let Some(bought) = bought? else { return Ok(()) };
        let content = bought.text.clone();
        bought.keep(past, outbox, Some(due.thread), (Role::User, content, due.until)).await?;
    }
    Ok(())
}

/// Returns a request for a short answer, without messages.
fn summary_request(claimed: &Claimed) -> ModelRequest {
    let max_tokens = request::most_tokens(claimed).min(MOST_TOKENS);
    ModelRequest { max_tokens, ..request::plain_request(claimed) }
}

fn request(claimed: &Claimed, overflow: &Overflow) -> ModelRequest {
    let said: Vec<String> = overflow.messages.iter().map(|message| line(message)).collect();
    ModelRequest {
        system: TASK.to_owned(),
        messages: vec![Arc::new(Message::text(Role::User, said.join("\n\n")))],
        tool_choice: ToolChoice::None,
        ..summary_request(claimed)
    }
}
