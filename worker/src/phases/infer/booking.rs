//! Booking of an answer (design §5): the provider's count, whole.
//!
//! An impossible count is booked as the reservation, and one that is absent as an estimate from the texts; both are
//! marked as estimated.

use super::reservation::Afforded;
use crate::model::estimates::{Estimates, Surplus};
use crate::model::{ModelAnswer, Usage};
use crate::state::Outbox;
use turnstone_domain::budget::{self, Amount};
use turnstone_domain::event::{ClampedUsage, EventBody, ExceededReservation};

/// The booking of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Booked {
    /// Tokens.
    pub usage: Usage,
    /// Money, in millionths of the currency.
    pub cost: i64,
    /// True if the tokens are not those that the provider counted.
    pub estimated: bool,
}

impl Booked {
    /// Returns the tokens of the prompt and the answer together.
    pub fn tokens(self) -> i64 {
        self.usage.total()
    }
}

impl Afforded {
    /// Returns what to book for an answer to this call.
    fn booked(&self, answer: &ModelAnswer, estimates: &Estimates) -> Booked {
        let said = answer.usage.unwrap_or_default();
        if estimates.are_recorded() {
            return Booked { usage: said, cost: self.price_of(said), estimated: false };
        }
        let context_tokens = estimates.context_tokens(&self.model);
        let counted = [said.input, said.output].iter().all(|count| *count >= 0)
            && budget::is_possible(said.total() / answer.parts.max(1), self.estimate(), context_tokens);
        if !counted {
            return Booked { usage: said.within(self.tokens), cost: self.money, estimated: true };
        }
        let written = written(answer);
        let output = if said.output == 0 { budget::estimate(written) } else { said.output };
        let input = if said.input == 0 { self.prompt_estimate() } else { said.input };
        let usage = Usage { input, output, ..said };
        let usage = usage.within(usage.total());
        Booked { usage, cost: self.price_of(usage), estimated: (input, output) != (said.input, said.output) }
    }
}

/// Returns the number of bytes that the model wrote.
fn written(answer: &ModelAnswer) -> usize {
    let calls = answer.tool_calls.iter().map(|call| call.name.len() + call.arguments.to_string().len());
    answer.content.as_ref().map_or(0, String::len) + calls.sum::<usize>()
}

/// Returns what to book for an answer. Adds events about a count that was not believed, and about one above the
/// reservation; the next calls of the model reserve more by the latter.
pub fn book(outbox: &mut Outbox, provider: &str, afforded: &Afforded, answer: &ModelAnswer) -> Booked {
    let estimates = &outbox.claimed.deps.estimates;
    let booked = afforded.booked(answer, estimates);
    let (tokens, reserved) = (booked.tokens(), afforded.tokens);
    let above = Surplus { tokens: tokens - reserved, money: booked.cost - afforded.money };
    if !booked.estimated && answer.parts == 1 {
        let now = outbox.claimed.deps.clock.now();
        estimates.learn(&afforded.model, afforded.above_estimate(above), now);
    }
    let counted = &outbox.claimed.trace.counted;
    counted.used(provider, booked.usage.input, booked.usage.output);
    counted.exceeded(provider, above.tokens);
    if let Some(reported) = answer.usage.map(Usage::total).filter(|_| booked.estimated) {
        outbox.event(&EventBody::UsageClamped(ClampedUsage { reported, booked: tokens }));
    }
    if above.tokens > 0 || above.money > 0 {
        let (provider, model) = (Some(provider.to_owned()), Some(answer.model.clone()));
        let costs = (above.money > 0).then_some((Amount(afforded.money), Amount(booked.cost)));
        let (cost_reserved, cost_booked) = costs.unzip();
        let exceeded = ExceededReservation {
            model,
            provider,
            tool: None,
            reserved,
            booked: tokens,
            cost_reserved,
            cost_booked,
        };
        outbox.event(&EventBody::ReservationExceeded(exceeded));
    }
    booked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AskedCall, FinishReason};
    use serde_json::json;
    use turnstone_domain::budget::Price;

    /// A call with a prompt of at most 400 tokens, and an answer of at most 100.
    fn afforded() -> Afforded {
        let price =
            Price { input: 1_000_000, cached_input: 500_000, output: 3_000_000, currency: "USD".into() };
        Afforded::of_test((400, 100), price)
    }

    fn answer(usage: Option<Usage>) -> ModelAnswer {
        ModelAnswer {
            content: Some("x".repeat(37)),
            tool_calls: Vec::new(),
            finish_reason: FinishReason::Stop,
            usage,
            model: "m".to_owned(),
            response_id: None,
            attached: None,
            parts: 1,
        }
    }

    #[test]
    fn what_is_possible_is_booked_whole() {
        let booked = |usage, context: Option<i64>| {
            let contexts = context.map(|tokens| ("p/m".to_owned(), tokens)).into_iter().collect();
            let booked = afforded().booked(&answer(Some(usage)), &Estimates::of(contexts));
            (booked.usage, booked.cost, booked.estimated)
        };
        for usage in [Usage::of(300, 50), Usage::of(300, 700), Usage::of(4_000, 1_000)] {
            assert_eq!(booked(usage, None), (usage, usage.input + 3 * usage.output, false));
        }
        let cached = Usage { cached_input: 200, ..Usage::of(300, 50) };
        assert_eq!(booked(cached, None), (cached, 100 + 100 + 150, false));
        let reserved = |input| (Usage::of(input, 500 - input), 400 + 300, true);
        assert_eq!(booked(Usage::of(4_001, 1_000), None), reserved(500), "ten times the reservation");
        assert_eq!(booked(Usage::of(4_001, 1_000), Some(8_000)), (Usage::of(4_001, 1_000), 7_001, false));
        assert_eq!(booked(Usage::of(100, 901), Some(1_000)), reserved(100), "the context has 1,000 tokens");
        assert_eq!(booked(Usage::of(100, -1), None), reserved(100));
        assert_eq!(booked(Usage::of(-1, 100), None), reserved(0));
        assert_eq!(booked(Usage::of(i64::MAX, i64::MAX), None), reserved(500));
        let parts = Usage { cached_input: 900, reasoning: -3, ..Usage::of(300, 50) };
        assert_eq!(booked(parts, None).0, Usage { cached_input: 300, ..Usage::of(300, 50) });
    }

    #[test]
    fn without_a_count_the_texts_are_counted() {
        let of = |answer: &ModelAnswer| {
            let booked = afforded().booked(answer, &Estimates::default());
            (booked.usage, booked.estimated)
        };
        for none in [None, Some(Usage::of(0, 0))] {
            assert_eq!(of(&answer(none)), (Usage::of(100, 10), true), "a quarter of the bytes");
        }
        assert_eq!(of(&answer(Some(Usage::of(80, 0)))), (Usage::of(80, 10), true));
        assert_eq!(
            of(&answer(Some(Usage::of(0, 12)))),
            (Usage::of(100, 12), true),
            "no prompt has no tokens"
        );
        let silent = ModelAnswer { content: None, ..answer(Some(Usage::of(80, 0))) };
        assert_eq!(of(&silent), (Usage::of(80, 0), false), "it wrote nothing");
        let arguments = json!({"text": "0123456789"});
        let call = AskedCall { name: "write".to_owned(), arguments };
        let calls = ModelAnswer { tool_calls: vec![call], content: None, ..answer(None) };
        assert_eq!(of(&calls), (Usage::of(100, 7), true));
        let recorded = Usage::of(9_000, 0);
        let again = afforded().booked(&answer(Some(recorded)), &Estimates::of_record());
        assert_eq!(
            (again.usage, again.estimated),
            (recorded, false),
            "the record was judged when it was made"
        );
    }
}
