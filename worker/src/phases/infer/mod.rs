//! INFER: the one model call of the turn, between two barriers (OSSA §1.4, design §4 and §5).
//!
//! Before the call everything is durable, and the most tokens and money that it can use are reserved. The answer, its
//! cost and its message are committed together. They are committed at once when the answer asks for tools, or when a rate
//! limit or a circuit breaker has to learn its outcome. Otherwise they are committed with the next write, before any
//! other call or wait ([`Outbox::secure`]).
//!
//! | file | part |
//! |---|---|
//! | `summary` | a call before, which shortens a conversation that outgrew the agent's memory |
//! | `request`, `prompt`, `pictures` | the request |
//! | `retries`, `overflow`, `ask`, `call` | calls models until one answers |
//! | `circuit`, `reservation`, `turn_limit` | may a call be made, and how much may it use |
//! | `booking` | what is booked for its answer |

mod ask;
mod booking;
mod call;
mod circuit;
mod overflow;
mod pictures;
mod prompt;
mod request;
mod reservation;
mod retries;
pub mod summary;
mod turn_limit;

use crate::flow::run::FlowRun;
use crate::flow::{self, NodeAnswer};
use crate::model::{AskedCall, FinishReason, ModelAnswer};
use crate::state::bodies::InferBody;
use crate::state::{Bodies, Outbox, Stop, Turn, TurnHistory};
use ask::{Answered, Prepared};
use booking::Booked;
use reservation::Afforded;
use std::sync::Arc;
use turnstone_domain::budget::{Amount, BudgetMove};
use turnstone_domain::event::{DropReason, DroppedAttached, EventBody, Inferred};
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_domain::{CallId, Identified, Spent};

/// Runs INFER: builds the request, calls models until one answers, and records the answer with its cost.
///
/// # Errors
/// [`Stop::Fail`] when the budget does not allow a call, no model answers, or a filter blocks the answer. The cost of a
/// blocked answer is recorded before. [`Stop::Drain`] when the worker drains, or the job is paused, while the call
/// waits for permission.
pub async fn run(turn: &mut Turn) -> Result<(), Stop> {
    let Turn { past, bodies, outbox, flow } = turn;
    if let Some(planned) = flow.as_deref().and_then(|run| flow::plan(past, outbox, run)) {
        return planned_node(bodies, outbox, planned);
    }
    if let Some(overflow) = past.conversation.overflow(&outbox.claimed.agent.memory) {
        Box::pin(summary::make(past, outbox, flow.as_deref(), overflow)).await?;
    }
    if let Some(run) = flow.as_deref_mut() {
        Box::pin(summary::transform(past, outbox, run)).await?;
    }
    let flow = flow.as_deref();
    let mut prepared = prepare(past, bodies, outbox, flow).await?;
    let wanted = prepared.request.max_tokens;
    match retries::ask(outbox, flow, &mut prepared).await {
        // A node of a flow may name another branch for a failure. The turn then continues as if the node had answered.
        Err(Stop::Fail(error)) if flow::catches(outbox, flow, &error) => {
            if let Some(afforded) = prepared.reserved {
                let tokens = BudgetMove::Settle { reserved: afforded.tokens, used: 0 };
                outbox.book(tokens, afforded.settled(0));
            }
            let failed = NodeAnswer { failed: Some(error.message), ..NodeAnswer::default() };
            planned_node(bodies, outbox, failed)
        }
        answered => Box::pin(keep(past, bodies, outbox, flow, answered?, wanted)).await,
    }
}

/// Builds the request. Apart from [`run`], so that a turn does not hold room for its variables while its model thinks.
async fn prepare(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
) -> Result<Prepared, Stop> {
    let mut request = request::request(past, bodies, outbox, flow)?;
    if pictures::may_be_shown(&outbox.claimed, &request) {
        Box::pin(pictures::attach(past, outbox, &mut request)).await?;
    }
    // An answer that is checked before it is shown has no followers, and neither has a conversation without the user.
    let live = outbox.claimed.agent.speaks_live() && past.conversation.thread().is_none();
    let mut prepared = Prepared::of(request, live);
    turn_limit::fit(past, outbox, &mut prepared)?;
    Ok(prepared)
}

/// Records an answer, commits it if something waits for that, and reports it to the rate limit and the circuit breaker.
async fn keep(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
    Answered { provider, mut answer, afforded, receipt }: Answered,
    wanted: i64,
) -> Result<(), Stop> {
    let booked = booking::book(outbox, &provider, &afforded, &answer);
    let blocked = outbox.screen_answer(&mut answer);
    let capped = afforded.max_tokens < wanted;
    record(past, bodies, outbox, flow, PaidAnswer { provider, answer, afforded, booked, capped })?;
    let has_calls = |answer: &Message| !answer.tool_calls.is_empty();
    let asks_for_tools = !outbox.claimed.is_node && past.conversation.answer().is_some_and(has_calls);
    let durable = match asks_for_tools || receipt.is_due() {
        true => outbox.secure().await,
        false => Ok(()),
    };
    // The answer is committed before the rate limit gets the unused tokens back. If the process dies in between, the limit
    // refills by itself, and the answer is not lost.
    receipt.report(outbox, booked.tokens()).await?;
    durable?;
    outbox.deadline.check()?;
    turn_limit::check_used(past, bodies, outbox)?;
    // Only now, because a blocked answer is paid for as well.
    blocked.map_or(Ok(()), |error| Err(error.into()))
}

/// Completes INFER for a node of a flow that calls no model, or whose call failed.
fn planned_node(bodies: &mut Bodies, outbox: &mut Outbox, planned: NodeAnswer) -> Result<(), Stop> {
    let body = InferBody {
        provider: String::new(),
        model: String::new(),
        finish_reason: FinishReason::Stop,
        tokens_in: 0,
        tokens_out: 0,
        tokens_cached: 0,
        tokens_reasoning: 0,
        estimated: false,
        capped: false,
        shortage: None,
        node: Some(planned),
    };
    outbox.complete_phase(&body)?;
    outbox.spent(Spent::default());
    bodies.inferred = Some(Arc::new(body));
    Ok(())
}

/// Returns the calls of an answer that run, and the names of those that do not. When the answer was cut at its length,
/// the last call may have lost arguments, so it does not run. When the provider filtered the answer, no call runs.
fn whole_calls(reason: FinishReason, mut requested: Vec<AskedCall>) -> (Vec<AskedCall>, Vec<String>) {
    let is_whole = |call: &AskedCall| call.arguments.as_object().is_some_and(|given| !given.is_empty());
    let cut = match reason {
        FinishReason::Length if requested.last().is_some_and(|last| !is_whole(last)) => {
            requested.split_off(requested.len() - 1)
        }
        FinishReason::ContentFilter => std::mem::take(&mut requested),
        _ => Vec::new(),
    };
    (requested, cut.into_iter().map(|call| call.name).collect())
}

/// An answer that was paid for.
struct PaidAnswer {
    provider: String,
    answer: ModelAnswer,
    afforded: Afforded,
    booked: Booked,
    /// True if the budget allowed a shorter answer only.
    capped: bool,
}

/// Adds the answer, its cost and the checkpoint of INFER to the pending write. They become durable at the next barrier.
fn record(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
    PaidAnswer { provider, answer, afforded, booked, capped }: PaidAnswer,
) -> Result<(), Stop> {
    let (reserved, used) = (afforded.tokens, booked.tokens());
    let Booked { usage, cost, estimated } = booked;
    let (requested, cut) = whole_calls(answer.finish_reason, answer.tool_calls);
    let mut attached = answer.attached;
    let dropped = attached.as_mut().map_or(0, |attached| attached.limit());
    if dropped > 0 {
        let facts = DroppedAttached { bytes: dropped, reason: DropReason::Size };
        outbox.event(&EventBody::ModelAttachedDropped(facts));
    }
    let crew = flow.and_then(|run| run.crew.as_ref());
    let tool_calls: Vec<RequestedCall> = requested
        .into_iter()
        .enumerate()
        .map(|(position, call)| RequestedCall {
            call_id: CallId(outbox.id_of(Identified::RequestedCall { position, tool: &call.name })),
            arguments: flow::cast(crew, &call.name, call.arguments),
            name: call.name,
        })
        .collect();
    let (node, content) = flow::keep_answer(outbox, flow, answer.content.unwrap_or_default(), &tool_calls);
    let body = InferBody {
        provider,
        model: answer.model,
        finish_reason: answer.finish_reason,
        tokens_in: usage.input,
        tokens_out: usage.output,
        tokens_cached: usage.cached_input,
        tokens_reasoning: usage.reasoning,
        estimated,
        capped,
        shortage: afforded.shortage.clone(),
        node,
    };
    let facts = Inferred {
        model: body.model.clone(),
        provider: body.provider.clone(),
        tokens_in: body.tokens_in,
        tokens_out: body.tokens_out,
        tokens_cached: body.tokens_cached,
        tokens_reasoning: body.tokens_reasoning,
        finish_reason: body.finish_reason,
        budget_left: outbox.budget.limit.map(|limit| (limit - outbox.budget.settled - used).max(0)),
        estimated: estimated.then_some(true),
        cost: (cost > 0).then_some(Amount(cost)),
        tool_calls: Some(tool_calls.iter().map(|call| call.name.clone()).collect()),
        tool_calls_cut: (!cut.is_empty()).then_some(cut),
    };
    outbox.position.model_used = Some(body.model.clone());
    (outbox.position.raise_until, outbox.position.kept_answer) = (None, None);
    outbox.pending.position = Some(outbox.position.clone());
    outbox.book(BudgetMove::Settle { reserved, used }, afforded.settled(cost));
    if let Some(content) = content {
        past.say(outbox, Message { tool_calls, attached, ..Message::text(Role::Assistant, content) });
    }
    // A summary bought in this turn is a cost of this phase.
    let (summed_in, summed_out) = past.conversation.summed_up_for(outbox.position.turn);
    let tokens = (body.tokens_in + summed_in, body.tokens_out + summed_out);
    outbox.complete_infer(&body, tokens, &facts)?;
    outbox.spent(Spent { tokens_cached: body.tokens_cached, cost, model: Some(afforded.model.clone()) });
    bodies.inferred = Some(Arc::new(body));
    Ok(())
}
