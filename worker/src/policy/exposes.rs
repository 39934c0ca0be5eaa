//! The values of the Engagement object that an agent exposes, with its answer and with its questions to the user
//! (OAS-47, OAS-55).

use crate::state::{Claimed, TurnHistory};
use serde_json::{Map, Value};
use turnstone_blocking::wait_in_place;

/// Returns true if the agent's answer is the field `text`, beside the values that it exposes.
pub fn is_any(claimed: &Claimed, past: &TurnHistory) -> bool {
    past.object.is_some() && !claimed.agent.exposes.is_empty()
}

/// Returns the exposed values as they are now, for a reader outside; an expression that fails yields `null`.
pub fn now(claimed: &Claimed, past: &TurnHistory) -> Map<String, Value> {
    values(claimed, past, claimed.agent.guardrails.hold_back())
}

/// Returns the exposed values; `guarded` if no words of models may be among them.
fn values(claimed: &Claimed, past: &TurnHistory, guarded: bool) -> Map<String, Value> {
    let Some(object) = past.object.as_ref().filter(|_| is_any(claimed, past)) else { return Map::new() };
    // No guardrail has checked the arguments of calls and the answers of other agents (OAS-43).
    let is_tool = |name: &str| claimed.is_tool(name);
    let hidden = guarded.then(|| object.without_words(is_tool));
    let object = hidden.as_ref().unwrap_or(object).view();
    let value = |source: &str| {
        let expression = claimed.deps.expression(&claimed.agent.capability_names(), source).ok()?;
        match expression.is_light() {
            true => expression.evaluate(&object).ok(),
            false => wait_in_place(|| expression.evaluate(&object)).ok(),
        }
    };
    let exposed = claimed.agent.exposes.iter();
    let mut exposed: Map<String, Value> =
        exposed.map(|(key, source)| (key.clone(), value(source).unwrap_or_default())).collect();
    exposed.values_mut().for_each(|value| claimed.agent.safety.redact(value));
    exposed
}

/// Returns an answer with the exposed values beside it. An answer in JSON is a text, too; its value is
/// `output`.
pub fn beside(claimed: &Claimed, past: &TurnHistory, result: Value) -> Value {
    if !is_any(claimed, past) {
        return result;
    }
    let mut shown = Map::new();
    match result {
        Value::String(_) => drop(shown.insert("text".to_owned(), result)),
        output => {
            shown.insert("text".to_owned(), output.to_string().into());
            shown.insert("output".to_owned(), output);
        }
    }
    // The caller of a delegate receives all of them, and checks what it shows.
    shown.extend(values(claimed, past, claimed.agent.guardrails.output.is_some()));
    Value::Object(shown)
}
