//! Payment for tool calls: calls with a price are paid for in the transaction that makes their intent
//! durable.

use super::claimed::Claimed;
use super::outbox::Outbox;
use super::stop::{Stop, unpriced};
use turnstone_domain::budget::{self, BudgetMove, Charge, ChargeMove};
use turnstone_domain::event::{ClampedUsage, EventBody, ExceededReservation};
use turnstone_domain::message::RequestedCall;
use turnstone_domain::tool_call::{AwayStep, ToolCallMove};
use turnstone_domain::{CallId, EventName, TurnWrite};
use turnstone_store::LedgerError;

/// Runs the barrier before calls leave, each with the name of its tool. `set_aside` are the tokens that an
/// agent on another server may spend. If a budget has not enough left, none of the calls is recorded as sent.
///
/// # Errors
/// As [`Outbox::barrier`], and [`Stop::Fail`] when a budget has not enough left.
pub async fn barrier(
    outbox: &mut Outbox,
    leaving: Vec<(CallId, String)>,
    set_aside: i64,
) -> Result<(), Stop> {
    let prices = &outbox.claimed.deps.prices;
    let calls: Vec<(CallId, i64)> = leaving
        .into_iter()
        .map(|(call, tool)| (call, prices.tool(&tool)))
        .filter(|(_, money)| *money > 0)
        .collect();
    if calls.is_empty() && set_aside == 0 {
        return outbox.barrier().await;
    }
    let charge = charge(&outbox.claimed, "tool calls", calls.iter().map(|(_, money)| money).sum());
    outbox.pending.charge = Some(Box::new(match set_aside {
        0 => ChargeMove::Spend { charge, calls },
        _ => ChargeMove::Reserve(charge),
    }));
    outbox.pending.budget = (set_aside > 0).then_some(BudgetMove::Reserve { tokens: set_aside });
    paid(outbox).await
}

/// Pays for one try of a guardrail's tool before it runs. The journal has no row for it, so its price is
/// counted as a cost of its phase.
///
/// # Errors
/// As [`barrier`].
pub async fn guardrail(outbox: &mut Outbox, tool: &str) -> Result<(), Stop> {
    let money = outbox.claimed.deps.prices.tool(tool);
    if money == 0 {
        return Ok(());
    }
    let charge = charge(&outbox.claimed, "a guardrail", money);
    outbox.pending.charge = Some(Box::new(ChargeMove::Spend { charge, calls: Vec::new() }));
    paid(outbox).await?;
    outbox.paid_before = outbox.paid_before.saturating_add(money);
    Ok(())
}

/// Returns a charge of this much money for every budget that is not limited to one model.
fn charge(claimed: &Claimed, what: &str, money: i64) -> Charge {
    let every_model = claimed.budgets.iter().filter(|budget| budget.model.is_none());
    Charge {
        what: what.to_owned(),
        money: Some(money),
        currency: claimed.deps.prices.currency().to_owned(),
        budgets: every_model.map(|budget| budget.name.clone()).collect(),
    }
}

/// Runs the barrier that pays for the pending calls; if it fails, they do not leave.
async fn paid(outbox: &mut Outbox) -> Result<(), Stop> {
    match outbox.try_barrier().await {
        Ok(()) => Ok(()),
        Err(error @ (LedgerError::BudgetExceeded { .. } | LedgerError::Unpriced { .. })) => {
            stay(&mut outbox.pending);
            Err(match error {
                LedgerError::Unpriced { budget, currency } => {
                    let priced_in = outbox.claimed.deps.prices.currency();
                    unpriced(&budget, currency.as_deref(), "the tool", priced_in).into()
                }
                error => error.into(),
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Books the tokens that an agent on another server used, all of them, and its price once it is `over`, and returns the
/// rest of the reservation. Calls that returned together are settled together.
pub fn settle(outbox: &mut Outbox, requested: &RequestedCall, (set_aside, used): (i64, i64), over: bool) {
    if set_aside == 0 {
        return;
    }
    let price = if over { outbox.claimed.deps.prices.tool(&requested.name) } else { 0 };
    // Another server's count is believed as a provider's is.
    let reported = used;
    let is_possible = budget::is_possible(reported, set_aside, None);
    let used = if is_possible { reported } else { set_aside };
    if !is_possible {
        outbox.event(&EventBody::UsageClamped(ClampedUsage { reported, booked: used }));
    }
    if used > set_aside {
        outbox.claimed.trace.counted.exceeded("remote", used - set_aside);
        let (model, provider, tool) = (None, None, Some(requested.name.clone()));
        let (cost_reserved, cost_booked) = (None, None);
        let exceeded = ExceededReservation {
            model,
            provider,
            tool,
            reserved: set_aside,
            booked: used,
            cost_reserved,
            cost_booked,
        };
        outbox.event(&EventBody::ReservationExceeded(exceeded));
    }
    let pending = &mut outbox.pending;
    let (reserved, before) = match pending.budget {
        Some(BudgetMove::Settle { reserved, used }) => (reserved, used),
        _ => (0, 0),
    };
    pending.budget = Some(BudgetMove::Settle { reserved: reserved + set_aside, used: before + used });
    let (mut money, mut calls) = match pending.charge.take().map(|charge| *charge) {
        Some(ChargeMove::Settle { money, calls }) => (money, calls),
        _ => (0, Vec::new()),
    };
    if price > 0 {
        money += price;
        calls.push((requested.call_id.clone(), price));
    }
    pending.charge = Some(Box::new(ChargeMove::Settle { money, calls }));
}

/// Removes the departure of calls from a write.
fn stay(write: &mut TurnWrite) {
    write.events.retain(|event| event.name != EventName::ToolCalled);
    let leaves = |step: &ToolCallMove| {
        matches!(
            step,
            ToolCallMove::Intend { sent: true, .. }
                | ToolCallMove::Send { .. }
                | ToolCallMove::Away { step: AwayStep::Leaves, .. }
        )
    };
    write.tool_calls.retain(|step| !leaves(step));
}
