//! The reservation for a model call: every budget that applies reserves the most that the call can use,
//! before it runs.

use super::ask::Prepared;
use crate::model::Usage;
use crate::state::stop::{budget_exceeded, too_little, unpriced};
use crate::state::{Outbox, Stop};
use turnstone_domain::budget::{self, Allowance, BudgetMove, Charge, ChargeMove, Measure, Price};
use turnstone_domain::checkpoint::Shortage;
use turnstone_store::LedgerError;

/// Attempts to fit a call into a budget, because other jobs may use it between two of them.
const FITTINGS: usize = 4;

/// The reservation for a call.
pub struct Afforded {
    /// Tokens.
    pub tokens: i64,
    /// The completion cap to send to the provider.
    pub max_tokens: i64,
    /// `provider/model`.
    pub model: String,
    /// The budget that capped the answer below the rest of the engagement's tokens.
    pub shortage: Option<Shortage>,
    charged: bool,
    /// True if no budget has a limit that the call could reach: then the provider's count is booked.
    unlimited: bool,
    money: i64,
    price: Option<Price>,
}

impl Afforded {
    /// Returns the tokens to book for the call, by the provider's count.
    pub fn book(&self, usage: Option<Usage>) -> i64 {
        let reported = usage.map(|usage| usage.total());
        if self.unlimited {
            budget::book_unlimited(reported, self.tokens)
        } else {
            budget::book(reported, self.tokens)
        }
    }

    /// Returns the price of the booked tokens, never more than a limited reservation. Without a count it is
    /// the whole reservation.
    pub fn cost(&self, usage: Option<Usage>) -> i64 {
        let Some((usage, price)) = usage.zip(self.price.as_ref()) else { return self.money };
        let counted =
            budget::Usage { input: usage.input, cached_input: usage.cached_input, output: usage.output };
        let cost = price.of(counted);
        if self.unlimited { cost } else { cost.min(self.money) }
    }

    /// Returns the movement that books the call's money, if there is any to book.
    pub fn settled(&self, cost: i64) -> Option<Box<ChargeMove>> {
        self.charged.then(|| Box::new(ChargeMove::Settle { money: cost, calls: Vec::new() }))
    }
}

/// Reserves the most that a call to this model may use; everything before the call is durable when this
/// returns. A reservation for a model that did not answer is released for it, and stays when there is no
/// room.
///
/// # Errors
/// [`Stop::Fail`] when a budget has not enough left for one token of an answer. Also when it is in money and
/// the model has no price.
pub async fn reserve(outbox: &mut Outbox, prepared: &mut Prepared, model: String) -> Result<Afforded, Stop> {
    let (before, prompt_bound) = (&mut prepared.reserved, prepared.prompt_bound);
    let price = outbox.claimed.deps.prices.model(&model).cloned();
    let applies = |budget: &&budget::AppliedBudget| budget.model.as_ref().is_none_or(|only| *only == model);
    let budgets: Vec<String> =
        outbox.claimed.budgets.iter().filter(applies).map(|budget| budget.name.clone()).collect();
    // An earlier charge has to be released, whatever this model costs.
    let charged = price.is_some()
        || !budgets.is_empty()
        || outbox.budget.money.limit.is_some()
        || before.as_ref().is_some_and(|before| before.charged);
    if !charged && let Some(before) = before.take() {
        // The reservation is the same for another model, so nothing has to be written.
        return Ok(Afforded { model, ..before });
    }
    let unlimited = outbox.budget.limit.is_none()
        && outbox.budget.money.limit.is_none()
        && outbox.claimed.budgets.is_empty();
    let known = budget::allow(prompt_bound, prepared.request.max_tokens, outbox.budget.left());
    // The ledger decides even if nothing seems to be left: other jobs may have released tokens.
    let mut fitting = known.unwrap_or(Allowance { reserve: prompt_bound.saturating_add(1), max_tokens: 1 });
    let mut shortage: Option<Shortage> = None;
    for _ in 0..FITTINGS {
        let Allowance { reserve: tokens, max_tokens } = fitting;
        let money = price.as_ref().map(|price| price.bound(prompt_bound, max_tokens));
        let afforded = Afforded {
            tokens,
            max_tokens,
            model: model.clone(),
            shortage: shortage.clone(),
            charged,
            unlimited,
            money: money.unwrap_or_default(),
            price: price.clone(),
        };
        let charge = charged.then(|| Charge {
            what: format!("model {model}"),
            money,
            currency: outbox.claimed.deps.prices.currency().to_owned(),
            budgets: budgets.clone(),
        });
        outbox.pending.budget = Some(BudgetMove::Reserve { tokens });
        outbox.pending.charge = charge.map(|charge| Box::new(ChargeMove::Reserve(charge)));
        match outbox.try_barrier().await {
            Ok(()) => {
                *before = None;
                outbox.deadline.check()?;
                return Ok(afforded);
            }
            Err(LedgerError::BudgetExceeded { left, needed, of }) => {
                let room = match of.measure {
                    Measure::Tokens => left.saturating_sub(prompt_bound),
                    Measure::Money => price.as_ref().map_or(-1, |price| price.affords(left, prompt_bound)),
                };
                if room < 1 || room >= max_tokens {
                    return Err(LedgerError::BudgetExceeded { left, needed, of }.into());
                }
                fitting = Allowance { reserve: prompt_bound.saturating_add(room), max_tokens: room };
                shortage = Some(Shortage { left, needed, of: *of });
            }
            Err(LedgerError::Unpriced { budget, currency }) => {
                let priced_in = outbox.claimed.deps.prices.currency();
                return Err(unpriced(&budget, currency.as_deref(), &model, priced_in).into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    let left = outbox.budget.left().unwrap_or_default();
    let error =
        shortage.map_or_else(|| budget_exceeded(left, fitting.reserve), |shortage| too_little(&shortage));
    Err(error.into())
}
