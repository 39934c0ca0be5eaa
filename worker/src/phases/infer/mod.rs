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
//! | `retries`, `ask` | calls models until one answers |
//! | `circuit`, `reservation`, `turn_limit` | may a call be made, and how much may it use |

mod ask;
mod circuit;
mod pictures;
mod prompt;
mod request;
mod reservation;
mod retries;
pub mod summary;
mod turn_limit;

use crate::flow::{self, NodeAnswer};
use crate::model::{AskedCall, FinishReason, ModelAnswer};
use crate::state::bodies::InferBody;
use crate::state::{Bodies, Outbox, Stop, Turn};
use ask::Answered;
use reservation::Afforded;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use turnstone_domain::budget::{Amount, BudgetMove};
use turnstone_domain::event::{ClampedUsage, EventBody, Inferred};
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_domain::{CallId, Spent};

/// Runs INFER: builds the request, calls models until one answers, and records the answer with its cost.
///
/// # Errors
/// [`Stop::Fail`] when the budget does not allow a call, no model answers, or a filter blocks the answer. The cost of a
/// blocked answer is recorded before. [`Stop::Drain`] when the worker drains, or the job is paused, while the call
/// waits for permission.
pub async fn run(turn: &mut Turn, draining: &CancellationToken) -> Result<(), Stop> {
    if let Some(planned) = flow::plan(turn) {
        return planned_node(&mut turn.bodies, &mut turn.outbox, planned);
    }
    if let Some(overflow) = turn.past.conversation.overflow(&turn.outbox.claimed.agent.memory) {
        Box::pin(summary::make(turn, overflow, draining)).await?;
    }
    if turn.flow.is_some() {
        Box::pin(summary::transform(turn, draining)).await?;
    }
    let mut request = request::request(turn)?;
    if pictures::may_be_shown(&turn.outbox.claimed, &request) {
        Box::pin(pictures::attach(&turn.past, &turn.outbox, &mut request)).await?;
    }
    let bound = request::bound(&request);
    turn_limit::fit(&turn.past, &turn.outbox, &mut request, bound)?;
    let wanted = request.max_tokens;
    let mut reserved = None;
    let requested = retries::ask(turn, &mut request, bound, &mut reserved, draining).await;
    let Answered { provider, mut answer, pass, afforded, success } = match requested {
        // A node of a flow may name another branch for a failure. The turn then continues as if the node had answered.
        Err(Stop::Fail(error)) if flow::catches(turn, &error) => {
            if let Some(afforded) = reserved {
                let tokens = BudgetMove::Settle { reserved: afforded.tokens, used: 0 };
                turn.outbox.book(tokens, afforded.settled(0));
            }
            return planned_node(
                &mut turn.bodies,
                &mut turn.outbox,
                NodeAnswer { failed: Some(error.message), ..NodeAnswer::default() },
            );
        }
        requested => requested?,
    };
    let used = afforded.book(answer.usage);
    let blocked = turn.outbox.screen_answer(&mut answer);
    record(turn, provider, answer, &afforded, afforded.max_tokens < wanted)?;
    let has_calls = |answer: &Message| !answer.tool_calls.is_empty();
    let asks_for_tools = turn.node().is_none() && turn.past.conversation.answer().is_some_and(has_calls);
    let commits_now = asks_for_tools || pass.is_some() || success.is_some();
    let durable = if commits_now { turn.outbox.secure().await } else { Ok(()) };
    // The answer is committed before the rate limit gets the unused tokens back. If the process dies in between, the limit
    // refills by itself, and the answer is not lost.
    if let Some(pass) = pass {
        Box::pin(turn.outbox.claimed.deps.limits.settle(
            turn.outbox.secured()?,
            &*turn.outbox.claimed.deps.clock,
            &pass,
            used,
        ))
        .await;
    }
    circuit::report(&turn.outbox, success).await?;
    durable?;
    turn.outbox.deadline.check()?;
    turn_limit::check_used(&turn.past, &turn.bodies, &turn.outbox)?;
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

/// Adds the answer, its cost and the checkpoint of INFER to the pending write. They become durable at the next barrier.
fn record(
    turn: &mut Turn,
    provider: String,
    answer: ModelAnswer,
    afforded: &Afforded,
    capped: bool,
) -> Result<(), Stop> {
    let reserved = afforded.tokens;
    let reported = answer.usage.map(|usage| usage.total());
    let used = afforded.book(answer.usage);
    if let Some(reported) = reported.filter(|reported| *reported != used) {
        turn.outbox.event(&EventBody::UsageClamped(ClampedUsage { reported, booked: used }));
    }
    let booked = answer.usage.unwrap_or_default().within(used);
    let cost = afforded.cost(answer.usage.map(|_| booked));
    let (requested, cut) = whole_calls(answer.finish_reason, answer.tool_calls);
    let tool_calls: Vec<RequestedCall> = requested
        .into_iter()
        .map(|call| RequestedCall {
            call_id: CallId(turn.outbox.claimed.deps.ids.next()),
            arguments: flow::cast(turn.crew(), &call.name, call.arguments),
            name: call.name,
        })
        .collect();
    let (node, content) = flow::keep_answer(turn, answer.content.unwrap_or_default(), &tool_calls);
    let body = InferBody {
        provider,
        model: answer.model,
        finish_reason: answer.finish_reason,
        tokens_in: booked.input,
        tokens_out: booked.output,
        tokens_cached: booked.cached_input,
        tokens_reasoning: booked.reasoning,
        estimated: reported.is_none(),
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
        budget_left: turn.outbox.budget.limit.map(|limit| limit - turn.outbox.budget.settled - used),
        cost: (cost > 0).then_some(Amount(cost)),
        tool_calls: Some(tool_calls.iter().map(|call| call.name.clone()).collect()),
        tool_calls_cut: (!cut.is_empty()).then_some(cut),
    };
    turn.outbox.position.model_used = Some(body.model.clone());
    turn.outbox.position.raise_until = None;
    let position = turn.outbox.position.clone();
    turn.outbox.pending.position = Some(position);
    turn.outbox.book(BudgetMove::Settle { reserved, used }, afforded.settled(cost));
    if let Some(content) = content {
        turn.past.say(&mut turn.outbox, Message { tool_calls, ..Message::text(Role::Assistant, content) });
    }
    // A summary bought in this turn is a cost of this phase.
    let (summed_in, summed_out) = turn.past.conversation.summed_up_for(turn.outbox.position.turn);
    let tokens = (body.tokens_in + summed_in, body.tokens_out + summed_out);
    turn.outbox.complete_infer(&body, tokens, &facts)?;
    turn.outbox.spent(Spent { tokens_cached: body.tokens_cached, cost, model: Some(afforded.model.clone()) });
    turn.bodies.inferred = Some(Arc::new(body));
    Ok(())
}
