//! The values of the Engagement object that an agent exposes, with its answer and with its questions to the user
//! (OAS-47, OAS-55).

use crate::state::Turn;
use serde_json::{Map, Value};
use turnstone_blocking::wait_in_place;

/// Returns true if the agent's answer is the field `text`, beside the values that it exposes.
pub fn is_any(turn: &Turn) -> bool {
    turn.past.object.is_some() && !turn.claimed.agent.exposes.is_empty()
}

/// Returns the exposed values as they are now; an expression that fails yields `null`.
pub fn now(turn: &Turn) -> Map<String, Value> {
    let Some(object) = turn.past.object.as_ref().filter(|_| is_any(turn)) else { return Map::new() };
    let object = object.view();
    let value = |source: &str| {
        let expression = turn.claimed.deps.expression(&turn.claimed.agent.capability_names(), source).ok()?;
        match expression.is_light() {
            true => expression.evaluate(&object).ok(),
            false => wait_in_place(|| expression.evaluate(&object)).ok(),
        }
    };
    let exposed = turn.claimed.agent.exposes.iter();
    exposed.map(|(key, source)| (key.clone(), value(source).unwrap_or_default())).collect()
}

/// Returns an answer with the exposed values beside it. An answer in JSON is a text, too; its value is
/// `output`.
pub fn beside(turn: &Turn, result: Value) -> Value {
    if !is_any(turn) {
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
    shown.extend(now(turn));
    Value::Object(shown)
}
