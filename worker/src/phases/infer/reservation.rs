//! The reservation for a model call: every budget that applies reserves the most that the call can use,
//! before it runs.

use super::ask::Prepared;
use crate::model::Usage;
use crate::model::estimates::Surplus;
use crate::state::stop::{budget_exceeded, too_little, too_little_for, unpriced};
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
    /// Money, in millionths of the currency.
    pub money: i64,
    price: Option<Price>,
    /// An upper bound of the tokens of the prompt.
    prompt_bound: i64,
    /// The part that is reserved because calls of late used more than their estimates.
    surplus: Surplus,
}

impl Afforded {
    /// Returns the most tokens that the call was thought to use, without the surplus of earlier ones.
    pub fn estimate(&self) -> i64 {
        self.tokens - self.surplus.tokens
    }

    /// Returns the tokens of the prompt, roughly.
    pub fn prompt_estimate(&self) -> i64 {
        budget::estimate(usize::try_from(self.prompt_bound).unwrap_or(0))
    }

    /// Returns the amounts above the estimate, from those above the reservation.
    pub fn above_estimate(&self, above: Surplus) -> Surplus {
        let Surplus { tokens, money } = self.surplus;
        Surplus { tokens: above.tokens.saturating_add(tokens), money: above.money.saturating_add(money) }
    }

    /// Returns the price of a call with this usage; 0 without a price.
    pub fn price_of(&self, usage: Usage) -> i64 {
        let Usage { input, cached_input, output, .. } = usage;
        self.price.as_ref().map_or(0, |price| price.of(budget::Usage { input, cached_input, output }))
    }

    /// Returns the movement that books the call's money, if there is any to book.
    pub fn settled(&self, cost: i64) -> Option<Box<ChargeMove>> {
        self.charged.then(|| Box::new(ChargeMove::Settle { money: cost, calls: Vec::new() }))
    }

    #[cfg(test)]
    pub fn of_test((prompt_bound, max_tokens): (i64, i64), price: Price) -> Self {
        Self {
            tokens: prompt_bound + max_tokens,
            max_tokens,
            model: "p/m".to_owned(),
            shortage: None,
            charged: true,
            money: price.bound(prompt_bound, max_tokens),
            price: Some(price),
            prompt_bound,
            surplus: Surplus::default(),
        }
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
    let before = &mut prepared.reserved;
    let surplus = outbox.claimed.deps.surplus(&model);
    let prompt_bound = prepared.prompt_bound.saturating_add(surplus.tokens);
    let price = outbox.claimed.deps.prices.model(&model).cloned();
    let applies = |budget: &&budget::AppliedBudget| budget.model.as_ref().is_none_or(|only| *only == model);
    let budgets: Vec<String> =
        outbox.claimed.budgets.iter().filter(applies).map(|budget| budget.name.clone()).collect();
    // An earlier charge has to be released, whatever this model costs.
    let charged = price.is_some()
        || !budgets.is_empty()
        || outbox.budget.money.limit.is_some()
        || before.as_ref().is_some_and(|before| before.charged || before.surplus != surplus);
    if !charged && let Some(before) = before.take() {
        // The reservation is the same for another model, so nothing has to be written.
        return Ok(Afforded { model, ..before });
    }
    let known = budget::allow(prompt_bound, prepared.request.max_tokens, outbox.budget.left());
    // The ledger decides even if nothing seems to be left: other jobs may have released tokens.
    let mut fitting = known.unwrap_or(Allowance { reserve: prompt_bound.saturating_add(1), max_tokens: 1 });
    let mut shortage: Option<Shortage> = None;
    let wanted_tokens = prepared.request.max_tokens;
    let cost = |max_tokens| {
        let bound = |price: &Price| price.bound(prepared.prompt_bound, max_tokens);
        price.as_ref().map(|price| bound(price).saturating_add(surplus.money))
    };
    let wanted = (prompt_bound.saturating_add(wanted_tokens), cost(wanted_tokens));
    for _ in 0..FITTINGS {
        let Allowance { reserve: tokens, max_tokens } = fitting;
        let money = cost(max_tokens);
        let afforded = Afforded {
            tokens,
            max_tokens,
            model: model.clone(),
            shortage: shortage.clone(),
            charged,
            money: money.unwrap_or_default(),
            price: price.clone(),
            prompt_bound: prepared.prompt_bound,
            surplus,
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
                    Measure::Money => price.as_ref().map_or(-1, |price| {
                        price.affords(left.saturating_sub(surplus.money), prepared.prompt_bound)
                    }),
                };
                if room < 1 || room >= max_tokens {
                    let shortage = Shortage { left, needed, of: *of };
                    return Err(too_little_for(shortage, wanted).into());
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
