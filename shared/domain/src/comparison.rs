//! The point at which two engagements diverge, and the cost of each of their turns.

use crate::message::{Message, Role, StoredMessage};
use crate::tool_call::ToolCall;
use crate::{AgentDefinition, Checkpoint, JobId, Phase};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An engagement that is compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Side {
    /// Its agent.
    pub agent: AgentDefinition,
    /// Its checkpoints, with the job that each is of.
    pub checkpoints: Vec<(JobId, Checkpoint)>,
    /// Its conversation.
    pub messages: Vec<StoredMessage>,
    /// Its tool journal.
    pub calls: Vec<ToolCall>,
}

/// Two engagements, compared.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The first difference; `None` when they are the same.
    pub parts_at: Option<Parting>,
    /// Turn by turn.
    pub turns: Vec<TurnPair>,
    /// Together: of the first, and of the second.
    pub total: (Cost, Cost),
}

/// The first difference of two engagements.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Parting {
    /// The turn.
    pub turn: i64,
    /// The phase.
    pub phase: Phase,
    /// The kind of the difference: input, tools, prompt, model, answer, tool call, result or end.
    pub what: &'static str,
    /// The value of the first engagement.
    pub a: Value,
    /// The value of the second engagement.
    pub b: Value,
}

/// The usage of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Cost {
    /// Prompt tokens.
    pub tokens_in: i64,
    /// Completion tokens.
    pub tokens_out: i64,
    /// Millionths of a currency.
    pub cost: i64,
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        Self {
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            cost: self.cost.saturating_add(other.cost),
        }
    }
}

/// A turn of either engagement; `None` where one has no such turn.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TurnPair {
    /// The turn.
    pub turn: i64,
    /// True if both engagements share the rows of this turn.
    pub shared: bool,
    /// True if both turns have the same content.
    pub same: bool,
    /// Of the first.
    pub a: Option<TurnFacts>,
    /// Of the second.
    pub b: Option<TurnFacts>,
}

/// The facts of a turn that a comparison shows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TurnFacts {
    /// The model that answered.
    pub model: Option<String>,
    /// The tools that the model called, in order.
    pub tool_calls: Vec<String>,
    /// The usage; zero for the part of a turn that a fork inherited.
    #[serde(flatten)]
    pub cost: Cost,
}

/// Compares two engagements.
#[must_use]
pub fn compare(a: &Side, b: &Side) -> Comparison {
    let numbers: BTreeSet<i64> =
        a.checkpoints.iter().chain(&b.checkpoints).map(|(_, done)| done.turn).collect();
    let (mut parts_at, mut turns) = (None, Vec::new());
    let mut total = (Cost::default(), Cost::default());
    for turn in numbers {
        let (one, other) = (Turn::of(a, turn), Turn::of(b, turn));
        let parting = one.parts_from(&other);
        let (facts_a, facts_b) = (one.facts(), other.facts());
        total.0 = total.0.plus(facts_a.as_ref().map(|facts| facts.cost).unwrap_or_default());
        total.1 = total.1.plus(facts_b.as_ref().map(|facts| facts.cost).unwrap_or_default());
        let shared = one.is_row_of(&other);
        turns.push(TurnPair { turn, shared, same: parting.is_none(), a: facts_a, b: facts_b });
        parts_at = parts_at.or(parting);
    }
    Comparison { parts_at, turns, total }
}

/// One turn of one engagement.
struct Turn<'a> {
    number: i64,
    agent: &'a AgentDefinition,
    checkpoints: Vec<&'a (JobId, Checkpoint)>,
    messages: Vec<&'a Message>,
    calls: Vec<&'a ToolCall>,
}

impl<'a> Turn<'a> {
    fn of(side: &'a Side, number: i64) -> Self {
        Self {
            number,
            agent: &side.agent,
            checkpoints: side.checkpoints.iter().filter(|(_, done)| done.turn == number).collect(),
            messages: side
                .messages
                .iter()
                .filter(|stored| stored.turn == number)
                .map(|stored| &stored.message)
                .collect(),
            calls: side.calls.iter().filter(|call| call.turn == number).collect(),
        }
    }

    fn phase(&self, phase: Phase) -> Option<&'a (JobId, Checkpoint)> {
        self.checkpoints.iter().find(|(_, done)| done.phase == phase).copied()
    }

    /// Returns true if both read the same rows.
    fn is_row_of(&self, other: &Self) -> bool {
        let job = |turn: &Self| turn.phase(Phase::Init).map(|(job, _)| job.clone());
        job(self).is_some() && job(self) == job(other)
    }

    fn text(&self, phase: Phase, name: &str) -> Value {
        self.phase(phase).map(|(_, done)| done.body[name].clone()).unwrap_or_default()
    }

    fn answer(&self) -> Option<&'a Message> {
        self.messages.iter().find(|message| message.role == Role::Assistant).copied()
    }

    fn asked(&self) -> Vec<Value> {
        let calls = self.answer().map(|answer| answer.tool_calls.as_slice()).unwrap_or_default();
        calls.iter().map(|call| json!({"name": call.name, "arguments": call.arguments})).collect()
    }

    fn results(&self) -> Vec<Value> {
        let shown = |call: &&ToolCall| match (&call.outcome, call.withheld) {
            (Some(_), true) => json!({"name": call.name, "withheld": true}),
            (outcome, _) => json!({"name": call.name, "outcome": outcome}),
        };
        self.calls.iter().map(shown).collect()
    }

    fn inputs(&self) -> Vec<Value> {
        let before = self.messages.iter().take_while(|message| message.role != Role::Assistant);
        before.map(|message| json!([message.role, message.content, message.parts])).collect()
    }

    /// Returns the first difference from another turn.
    fn parts_from(&self, other: &Self) -> Option<Parting> {
        if self.is_row_of(other) {
            return None;
        }
        let at = |phase, what, a: Value, b: Value| {
            (a != b).then_some(Parting { turn: self.number, phase, what, a, b })
        };
        let content = |turn: &Self| turn.answer().map(|answer| answer.content.clone()).into();
        at(Phase::Norm, "input", self.inputs().into(), other.inputs().into())
            .or_else(|| {
                let tools = |turn: &Self| turn.text(Phase::Resol, "tools");
                at(Phase::Resol, "tools", tools(self), tools(other))
            })
            .or_else(|| {
                let prompt = |turn: &Self| turn.agent.instructions.clone().into();
                at(Phase::Infer, "prompt", prompt(self), prompt(other))
            })
            .or_else(|| {
                let model = |turn: &Self| turn.text(Phase::Infer, "model");
                at(Phase::Infer, "model", model(self), model(other))
            })
            .or_else(|| at(Phase::Infer, "tool call", self.asked().into(), other.asked().into()))
            .or_else(|| at(Phase::Infer, "answer", content(self), content(other)))
            .or_else(|| at(Phase::Exec, "result", self.results().into(), other.results().into()))
            .or_else(|| {
                let phases = |turn: &Self| turn.checkpoints.len().into();
                let phase = Phase::resume_after(self.checkpoints.len().min(other.checkpoints.len()));
                at(phase.unwrap_or(Phase::Emit), "end", phases(self), phases(other))
            })
    }

    fn facts(&self) -> Option<TurnFacts> {
        if self.checkpoints.is_empty() {
            return None;
        }
        let cost = self.checkpoints.iter().fold(Cost::default(), |sum, (_, done)| {
            let (tokens_in, tokens_out, cost) = (done.tokens_in, done.tokens_out, done.spent.cost);
            sum.plus(Cost { tokens_in, tokens_out, cost })
        });
        let requested = self.answer().map(|answer| answer.tool_calls.as_slice()).unwrap_or_default();
        Some(TurnFacts {
            model: self.text(Phase::Infer, "model").as_str().map(str::to_owned),
            tool_calls: requested.iter().map(|call| call.name.clone()).collect(),
            cost,
        })
    }
}
