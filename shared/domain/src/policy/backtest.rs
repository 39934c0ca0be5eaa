//! Evaluates an agent's assertions over recorded calls: `turnstone policy test`.

use super::Expression;
use crate::agent::{AgentDefinition, Capability};
use crate::engagement::{Engagement, EngagementObject};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// A call as a recorded engagement has it.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// The tool or agent.
    pub name: String,
    /// Its inputs.
    pub inputs: Value,
    /// True if it was made; false if it was refused.
    pub was_made: bool,
    /// Its output; `None` when that is not on record.
    pub outputs: Option<Value>,
}

/// A call that an assertion would have refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Refused {
    /// The call, counted from 1.
    pub call: usize,
    /// The tool or agent.
    pub name: String,
    /// `input` or `output`.
    pub restriction: &'static str,
    /// Why.
    pub why: String,
}

/// The result for one engagement.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Found {
    /// Calls that were checked.
    pub calls: usize,
    /// Assertions that were evaluated.
    pub assertions: usize,
    /// Output assertions that could not be evaluated, because the output is not on record.
    pub unknown: usize,
    /// The calls that an assertion would have refused.
    pub refused: Vec<Refused>,
}

/// The assertions of an agent, compiled once for any number of engagements.
pub struct Backtest<'a> {
    agent: &'a AgentDefinition,
    compiled: HashMap<&'a str, Result<Expression, String>>,
}

impl<'a> Backtest<'a> {
    /// Compiles the assertions.
    #[must_use]
    pub fn of(agent: &'a AgentDefinition) -> Self {
        let names: Vec<&str> = agent.capabilities.iter().map(|capability| capability.name.as_str()).collect();
        let sources = agent.capabilities.iter().flat_map(|capability| {
            [&capability.input_restriction, &capability.output_restriction]
                .into_iter()
                .filter_map(|restriction| restriction.assertion.as_deref())
        });
        let compile = |source| (source, Expression::compile(source, &names).map_err(|e| e.to_string()));
        Self { agent, compiled: sources.map(compile).collect() }
    }

    /// Evaluates them over the calls of an engagement, in order and at the points at which a worker does. The calls
    /// stay unchanged: a call that would have been refused is part of the history that later ones see.
    #[must_use]
    pub fn over(&self, engagement: &Engagement, calls: &[Recorded]) -> Found {
        let mut object = EngagementObject::begin(engagement, self.agent);
        let mut found = Found { calls: calls.len(), ..Found::default() };
        for (at, call) in calls.iter().enumerate() {
            let refused =
                |restriction, why| Refused { call: at + 1, name: call.name.clone(), restriction, why };
            let capability = self.agent.capability(&call.name);
            let source =
                |of: fn(&Capability) -> &Option<String>| capability.and_then(|one| of(one).as_deref());
            if let Some(source) = source(|one| &one.input_restriction.assertion) {
                found.assertions += 1;
                let view = object.with_pending(&call.name, &call.inputs);
                found.refused.extend(self.denied(source, &view).map(|why| refused("input", why)));
            }
            if !call.was_made {
                continue;
            }
            match (source(|one| &one.output_restriction.assertion), &call.outputs) {
                (Some(source), Some(outputs)) => {
                    found.assertions += 1;
                    let view = object.with_made(&call.name, &call.inputs, outputs);
                    found.refused.extend(self.denied(source, &view).map(|why| refused("output", why)));
                }
                (Some(_), None) => found.unknown += 1,
                (None, _) => {}
            }
            object.record(&call.name, call.inputs.clone(), call.outputs.clone().unwrap_or_default());
        }
        found
    }

    fn denied(&self, source: &str, view: &super::View<'_>) -> Option<String> {
        match self.compiled.get(source)? {
            Ok(expression) => expression.assert(view).err().map(|denial| denial.to_string()),
            Err(why) => Some(why.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::agent::Restriction;
    use crate::engagement::User;
    use serde_json::json;

    fn agent() -> AgentDefinition {
        let asserting =
            |source: &str| Restriction { assertion: Some(source.to_owned()), ..Restriction::default() };
        let book = Capability {
            input_restriction: asserting("recent.book.inputs.price <= 800 && size(history.book) < 2"),
            output_restriction: asserting("recent.book.outputs.ok"),
            ..Capability::named("book")
        };
        AgentDefinition {
            capabilities: vec![book, Capability::named("search")],
            ..AgentDefinition::default()
        }
    }

    fn engagement() -> Engagement {
        Engagement {
            id: "e".into(),
            agent: "a".into(),
            user: User::default(),
            started_at: Timestamp(0),
            turns: 3,
        }
    }

    fn call(name: &str, inputs: Value, outputs: Option<Value>) -> Recorded {
        Recorded { name: name.to_owned(), inputs, was_made: true, outputs }
    }

    #[test]
    fn it_says_which_call_would_have_been_refused_and_why() {
        let ok = Some(json!({"ok": true}));
        let calls = [
            call("book", json!({"price": 640}), ok.clone()),
            call("search", json!({}), None),
            Recorded { was_made: false, ..call("book", json!({"price": 900}), None) },
            call("book", json!({"price": 1}), Some(json!({"ok": false}))),
            call("book", json!({"price": 1}), ok),
            call("unheard-of", json!({}), Some(json!(1))),
            call("book", json!({"price": 1}), None),
        ];
        let agent = agent();
        let found = Backtest::of(&agent).over(&engagement(), &calls);
        let refused: Vec<_> = found.refused.iter().map(|one| (one.call, one.restriction)).collect();
        assert_eq!(refused, [(3, "input"), (4, "output"), (5, "input"), (7, "input")]);
        assert_eq!((found.calls, found.assertions, found.unknown), (7, 8, 1));
        assert!(found.refused[0].why.contains("does not hold"));
    }
}
