//! Tool calls that have a price are paid for in the transaction that makes their intent durable.

use crate::turn::state::Turn;
use crate::turn::stop::{Stop, unpriced};
use turnstone_domain::budget::{BudgetMove, Charge, ChargeMove};
use turnstone_domain::tool_call::ToolCallMove;
use turnstone_domain::{CallId, EventName, TurnWrite};
use turnstone_store::LedgerError;

/// A barrier before calls leave, each with the name of its tool; `set_aside` are tokens that an agent on another server may
/// spend. When a budget has not enough left for them, none of them is known to have left.
///
/// # Errors
/// As [`Turn::barrier`], and [`Stop::Fail`] when a budget has not enough left.
pub async fn barrier(turn: &mut Turn, leaving: Vec<(CallId, String)>, set_aside: i64) -> Result<(), Stop> {
    let prices = &turn.deps.clone().prices;
    let calls: Vec<(CallId, i64)> = leaving
        .into_iter()
        .map(|(call, tool)| (call, prices.tool(&tool)))
        .filter(|(_, money)| *money > 0)
        .collect();
    if calls.is_empty() && set_aside == 0 {
        return turn.barrier().await;
    }
    let every_model = turn.budgets.iter().filter(|budget| budget.model.is_none());
    let charge = Charge {
        what: "tool calls".to_owned(),
        money: Some(calls.iter().map(|(_, money)| money).sum()),
        currency: prices.currency().to_owned(),
        budgets: every_model.map(|budget| budget.name.clone()).collect(),
    };
    turn.pending().charge = Some(Box::new(match set_aside {
        0 => ChargeMove::Spend { charge, calls },
        _ => ChargeMove::Reserve(charge),
    }));
    turn.pending().budget = (set_aside > 0).then_some(BudgetMove::Reserve { tokens: set_aside });
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

/// Books what an agent on another server used, and gives the rest of what was set aside back.
pub fn settle(turn: &mut Turn, set_aside: i64, used: i64) {
    if set_aside > 0 {
        let used = used.clamp(0, set_aside);
        turn.pending().budget = Some(BudgetMove::Settle { reserved: set_aside, used });
        turn.pending().charge = Some(Box::new(ChargeMove::Settle { money: 0 }));
    }
}

/// Takes back that calls leave.
fn stay(write: &mut TurnWrite) {
    write.events.retain(|event| event.name != EventName::ToolCalled);
    write
        .tool_calls
        .retain(|step| !matches!(step, ToolCallMove::Intend { sent: true, .. } | ToolCallMove::Send { .. }));
}
