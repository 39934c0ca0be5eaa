//! Budget changes of a turn: reserved before a call, settled after it, in every budget that applies or in none.

use super::super::rows::Share;
use super::super::unit::{Move, Shared, Unit};
use super::turns::{TurnEnd, TurnStep};
use crate::LedgerError;
use std::collections::BTreeSet;
use turnstone_domain::budget::{
    ALL_DAYS, Budget, BudgetMove, BudgetWait, Charge, ChargeMove, Measure, Short, day_of, end_of,
};
use turnstone_domain::{Settlement, Timestamp, TurnWrite, Wait};

/// How soon a parked job looks again at a budget that calls under way have set aside, in milliseconds.
const LOOK_AGAIN_MS: i64 = 5_000;

/// The shared budgets that these steps are charged to, with their days.
pub(super) fn named(steps: &[&TurnStep]) -> BTreeSet<(String, i64)> {
    let mut named = BTreeSet::new();
    for step in steps {
        if let Some(name) = waits(step).and_then(|wait| wait.name.clone()) {
            named.insert((name, day_of(step.now)));
        }
        let Some(ChargeMove::Reserve(charge) | ChargeMove::Spend { charge, .. }) =
            step.write.charge.as_deref()
        else {
            continue;
        };
        named.extend(charge.budgets.iter().map(|name| (name.clone(), day_of(step.now))));
    }
    named
}

/// Returns true when this step changes a budget, or waits for one.
pub(super) fn moves(step: &TurnStep) -> bool {
    step.write.budget.is_some() || step.write.charge.is_some() || waits(step).is_some()
}

/// Returns the budget that a parking job waits for, if it waits for one.
pub(super) fn waits(step: &TurnStep) -> Option<&BudgetWait> {
    let TurnEnd::Settle(end) = &step.end else { return None };
    match &**end {
        Settlement::Park { wait: Wait::Raise(wait) } => Some(wait),
        _ => None,
    }
}

/// Returns when a job that parks looks at its budget again. The job looks by itself in two cases: calls under way
/// hold the missing amount, or the budget was raised meanwhile. Then no raise would wake it.
pub(super) fn look_again(unit: &Unit, seq: i64, wait: &BudgetWait, now: Timestamp) -> Option<Timestamp> {
    let fits = match &wait.name {
        None => wait.fits(&unit.budget_of(seq)),
        Some(name) => {
            let day = wait.resets_at.map_or(ALL_DAYS, |at| day_of(at) - 1);
            let mut rows = unit.shared_budgets(std::slice::from_ref(name), day_of(now)).into_iter();
            // One that was forgotten since limits nothing.
            rows.find(|row| row.day == day).is_none_or(|row| wait.fits(&unit.budget(row.seq)))
        }
    };
    let soon = fits.then(|| now.plus_ms(LOOK_AGAIN_MS));
    soon.into_iter().chain(wait.resets_at).min()
}

/// Moves the budgets as a write says.
pub(super) fn apply(unit: &mut Unit, seq: i64, write: &TurnWrite, now: Timestamp) -> Result<(), LedgerError> {
    match (write.budget, write.charge.as_deref()) {
        (Some(BudgetMove::Reserve { tokens }), Some(ChargeMove::Reserve(charge))) => {
            reserve(unit, seq, tokens, charge, now)
        }
        (Some(BudgetMove::Reserve { tokens }), _) => reserve_own(unit, seq, tokens),
        (Some(BudgetMove::Settle { reserved, used }), charge) => {
            let (money, calls) = match charge {
                Some(ChargeMove::Settle { money, calls }) => (*money, calls.as_slice()),
                _ => (0, Default::default()),
            };
            settle(unit, seq, (reserved, used), money, now)?;
            calls.iter().for_each(|(call, money)| unit.cost_of_call(call, *money));
            Ok(())
        }
        (None, Some(ChargeMove::Spend { charge, calls })) => {
            spend(unit, seq, charge, now)?;
            calls.iter().for_each(|(call, money)| unit.cost_of_call(call, *money));
            Ok(())
        }
        (None, _) => Ok(()),
    }
}

/// A budget that a call is charged to.
struct Account {
    seq: i64,
    budget: Budget,
    /// The amount that this job has reserved already; a new reservation replaces it.
    held: Share,
    shared: Option<Shared>,
}

impl Account {
    /// Returns the refusal when `needed` does not fit.
    fn refuses(&self, measure: Measure, needed: i64) -> Option<LedgerError> {
        let purse = self.budget.purse(measure);
        let held = match measure {
            Measure::Tokens => self.held.tokens,
            Measure::Money => self.held.money,
        };
        let limit = purse.limit?;
        // The spending may exceed the limit. Then the reservation that is replaced makes no room for the new one.
        let of_others = purse.settled.saturating_add(purse.reserved).saturating_sub(held);
        let left = limit.saturating_sub(of_others).clamp(0, limit.max(0));
        let day = self.shared.as_ref().map(|shared| shared.day).filter(|day| *day != ALL_DAYS);
        (needed > left).then(|| LedgerError::BudgetExceeded {
            left,
            needed,
            of: Box::new(Short {
                name: self.shared.as_ref().map(|shared| shared.name.clone()),
                measure,
                limit,
                settled: purse.settled,
                on_exceed: self.budget.on_exceed,
                resets_at: day.map(end_of),
            }),
        })
    }

    /// Returns the money to reserve for the call, with a limit or without one. So a limit that is set while the
    /// call is under way leaves room for its cost.
    fn money(&self, charge: &Charge) -> Result<i64, LedgerError> {
        if self.budget.money.limit.is_none() {
            return Ok(charge.money.unwrap_or_default());
        }
        let name = self.shared.as_ref().map_or("engagement", |shared| shared.name.as_str());
        let Some(money) = charge.money else {
            return Err(LedgerError::Unpriced { budget: name.to_owned(), currency: None });
        };
        // The budget of an engagement, and of a delegate within it, is in the currency of the price list.
        let other = |shared: &&Shared| !shared.currency.is_empty() && shared.currency != charge.currency;
        match self.shared.as_ref().filter(other) {
            Some(shared) => Err(LedgerError::Unpriced {
                budget: name.to_owned(),
                currency: Some(shared.currency.clone()),
            }),
            None => Ok(money),
        }
    }
}

/// The budget of the engagement first, then the shared ones that apply.
fn accounts(unit: &Unit, seq: i64, charge: &Charge, now: Timestamp) -> Vec<Account> {
    let job = unit.job(seq);
    let held = |budget_seq: i64| {
        let share = job.and_then(|job| job.shares.iter().find(|share| share.budget_seq == budget_seq));
        share.copied().unwrap_or(Share { budget_seq, tokens: 0, money: 0 })
    };
    let own = unit.engagement_of(seq).map(|row| Account {
        seq: row.budget_seq,
        budget: unit.budget(row.budget_seq),
        held: Share { tokens: job.map_or(0, |job| job.reserved), ..held(row.budget_seq) },
        shared: None,
    });
    let shared = unit.shared_budgets(&charge.budgets, day_of(now)).into_iter().map(|shared| Account {
        seq: shared.seq,
        budget: unit.budget(shared.seq),
        held: held(shared.seq),
        shared: Some(shared),
    });
    own.into_iter().chain(shared).collect()
}

fn reserve_own(unit: &mut Unit, seq: i64, tokens: i64) -> Result<(), LedgerError> {
    let nothing = Charge { what: String::new(), money: None, currency: String::new(), budgets: Vec::new() };
    for account in accounts(unit, seq, &nothing, Timestamp::default()) {
        account.money(&nothing)?;
        let added = Account { held: Share { tokens: 0, ..account.held }, ..account };
        if let Some(refused) = added.refuses(Measure::Tokens, tokens) {
            return Err(refused);
        }
    }
    unit.move_budget(seq, 0, tokens);
    let job = unit.change_job(seq)?;
    job.reserved = job.reserved.saturating_add(tokens);
    Ok(())
}

fn reserve(
    unit: &mut Unit,
    seq: i64,
    tokens: i64,
    charge: &Charge,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let accounts = accounts(unit, seq, charge, now);
    let mut wanted = Vec::with_capacity(accounts.len());
    for account in &accounts {
        let money = account.money(charge)?;
        let refused =
            account.refuses(Measure::Tokens, tokens).or_else(|| account.refuses(Measure::Money, money));
        if let Some(refused) = refused {
            return Err(refused);
        }
        // The tokens of the engagement's own budget are stored with the job.
        let tokens = if account.shared.is_some() { tokens } else { 0 };
        wanted.push(Share { budget_seq: account.seq, tokens, money });
    }
    unit.give_back(seq)?;
    unit.move_budget(seq, 0, tokens);
    unit.change_job(seq)?.reserved = tokens;
    for share in wanted.into_iter().filter(|share| share.tokens > 0 || share.money > 0) {
        unit.reserve_share(seq, share)?;
    }
    Ok(())
}

fn settle(
    unit: &mut Unit,
    seq: i64,
    (reserved, used): (i64, i64),
    money: i64,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let shares = unit.take_shares(seq)?;
    let own = unit.engagement_of(seq).map(|row| row.budget_seq);
    if let Some(own) = own {
        let held = shares.iter().find(|share| share.budget_seq == own).map_or(0, |share| share.money);
        let by = Move { settled: used, reserved: -reserved, money_settled: money, money_reserved: -held };
        unit.spend(seq, own, by, now)?;
    }
    for share in shares.iter().filter(|share| Some(share.budget_seq) != own) {
        let by = Move {
            settled: used,
            reserved: -share.tokens,
            money_settled: money,
            money_reserved: -share.money,
        };
        unit.spend(seq, share.budget_seq, by, now)?;
    }
    let job = unit.change_job(seq)?;
    job.reserved -= reserved;
    job.tokens_used = job.tokens_used.saturating_add(used);
    Ok(())
}

fn spend(unit: &mut Unit, seq: i64, charge: &Charge, now: Timestamp) -> Result<(), LedgerError> {
    let mut paying = Vec::new();
    for account in accounts(unit, seq, charge, now) {
        account.money(charge)?;
        let money = charge.money.unwrap_or_default();
        // What is set aside for other calls of this job is not there for this one.
        let account = Account { held: Share { tokens: 0, money: 0, ..account.held }, ..account };
        if let Some(refused) = account.refuses(Measure::Money, money) {
            return Err(refused);
        }
        paying.push((account.seq, money));
    }
    for (budget_seq, money) in paying {
        // Reserved and booked in one, so the row has to have room for it.
        unit.set_aside(budget_seq, money);
        let by = Move { money_settled: money, money_reserved: -money, ..Move::default() };
        unit.spend(seq, budget_seq, by, now)?;
    }
    Ok(())
}
