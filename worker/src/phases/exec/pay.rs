//! Tool calls that have a price are paid for in the transaction that makes their intent durable.

use crate::turn::state::Turn;
use crate::turn::stop::{Stop, unpriced};
use turnstone_domain::budget::{Charge, ChargeMove};
use turnstone_domain::tool_call::ToolCallMove;
use turnstone_domain::{CallId, EventName, TurnWrite};
use turnstone_store::LedgerError;

/// A barrier before calls leave, each with the name of its tool. When a budget has not enough left for them, none of them is known to have left.
///
/// # Errors
/// As [`Turn::barrier`], and [`Stop::Fail`] when a budget has not enough left.
pub async fn barrier(turn: &mut Turn, leaving: Vec<(CallId, String)>) -> Result<(), Stop> {
    let prices = &turn.deps.clone().prices;
    let calls: Vec<(CallId, i64)> = leaving
        .into_iter()
        .map(|(call, tool)| (call, prices.tool(&tool)))
        .filter(|(_, money)| *money > 0)
        .collect();
    if calls.is_empty() {
        return turn.barrier().await;
    }
    let every_model = turn.budgets.iter().filter(|budget| budget.model.is_none());
    let charge = Charge {
        what: "tool calls".to_owned(),
        money: Some(calls.iter().map(|(_, money)| money).sum()),
        currency: prices.currency().to_owned(),
        budgets: every_model.map(|budget| budget.name.clone()).collect(),
    };
    turn.pending().charge = Some(Box::new(ChargeMove::Spend { charge, calls }));
    match turn.try_barrier().await {
        Ok(()) => Ok(()),
        Err(error @ (LedgerError::BudgetExceeded { .. } | LedgerError::Unpriced { .. })) => {
            stay(turn.pending());
            Err(match error {
                LedgerError::Unpriced { budget, currency } => {
                    unpriced(&budget, currency.as_deref(), "the tool", prices.currency()).into()
                }
                error => error.into(),
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes back that calls leave.
fn stay(write: &mut TurnWrite) {
    write.events.retain(|event| event.name != EventName::ToolCalled);
    write
        .tool_calls
        .retain(|step| !matches!(step, ToolCallMove::Intend { sent: true, .. } | ToolCallMove::Send { .. }));
}
