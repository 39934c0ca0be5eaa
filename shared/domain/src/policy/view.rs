//! The view of an expression: the Engagement object as it is, or as if one more call had been made.

use super::cost::Read;
use super::kept::Kept;
use super::names::{self, NameLoop};
use super::value::{
    Bound, Left, MAX_BYTES, MAX_BYTES_LOOKED_UP, MAX_LIST, MAX_LIST_LOOKED_UP, cel, key, object,
};
use super::vet::{Keys, Needs};
use super::{PolicyError, VARIABLES};
use cel::common::types::{CelInt, CelMap, CelString, CelTimestamp};
use chrono::DateTime;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The parts of the Engagement object, borrowed from it.
pub(crate) struct Parts<'a> {
    pub(crate) started_at: String,
    pub(crate) user: Value,
    pub(crate) recent_name: &'a str,
    pub(crate) recent: &'a Map<String, Value>,
    pub(crate) list: &'a [Value],
    pub(crate) history: &'a Map<String, Value>,
    pub(crate) kept: &'a Kept,
}

/// A call that has not been made yet, or is not part of the object yet.
pub(crate) enum Next<'a> {
    /// Nothing: the object as it is.
    Nothing,
    /// These inputs are about to be sent (agents brief §1.4, step 4).
    Pending(&'a str, &'a Value),
    /// This call has just been made (step 8).
    Made(&'a str, Value),
}

/// The Engagement object at one point of a call.
pub struct View<'a> {
    pub(crate) parts: Parts<'a>,
    pub(crate) next: Next<'a>,
}

impl View<'_> {
    /// Returns the view as JSON, with the exact field names of the specification: what a reviewer is shown (OAS-31).
    #[must_use]
    pub fn to_json(&self) -> Value {
        let parts = &self.parts;
        let mut recent = parts.recent.clone();
        let mut history = parts.history.clone();
        let mut list = parts.list.to_vec();
        let mut name = parts.recent_name;
        match &self.next {
            Next::Nothing => {}
            Next::Pending(of, inputs) => {
                recent.insert((*of).to_owned(), pending(parts.recent.get(*of), inputs));
            }
            Next::Made(of, entry) => {
                name = of;
                recent.insert((*of).to_owned(), entry.clone());
                list.push((*of).into());
                if let Value::Array(calls) = history.entry(*of).or_insert_with(|| json!([])) {
                    calls.push(entry.clone());
                }
            }
        }
        let mut all_recent = Map::new();
        all_recent.insert("_name".to_owned(), name.into());
        all_recent.extend(recent);
        let mut all_history = Map::new();
        all_history.insert("_total".to_owned(), list.len().into());
        all_history.insert("_list".to_owned(), Value::Array(list));
        all_history.extend(history);
        json!({"started_at": parts.started_at, "user": parts.user, "recent": all_recent, "history": all_history})
    }

    /// Returns the variables and keys that an expression names, and the size of what they hold.
    pub(super) fn bind(
        &self,
        needs: &Needs,
        looks_up: bool,
    ) -> Result<(Vec<(String, Bound)>, Read), PolicyError> {
        let (bytes, list) =
            if looks_up { (MAX_BYTES_LOOKED_UP, MAX_LIST_LOOKED_UP) } else { (MAX_BYTES, MAX_LIST) };
        let mut left = Left::new(bytes, list);
        let mut variables = Vec::with_capacity(VARIABLES.len());
        for name in VARIABLES {
            let Some(keys) = needs.get(name) else { continue };
            let value: Bound = match name {
                "started_at" => timestamp(&self.parts.started_at)?,
                "user" => Box::new(self.user(keys, &mut left)?),
                "recent" => Box::new(self.recent(keys, &mut left)?),
                _ => Box::new(self.history(keys, &mut left)?),
            };
            variables.push((name.to_owned(), value));
        }
        Ok((variables, read(bytes, &left)))
    }

    /// Returns the result of a loop over the names of the history.
    pub(super) fn holds_for_names(&self, each: &NameLoop) -> bool {
        let made = match &self.next {
            Next::Made(of, _) => Some(*of),
            Next::Nothing | Next::Pending(..) => None,
        };
        each.over(names::of(self.parts.list).chain(made))
    }

    fn user(&self, keys: &Keys, left: &mut Left) -> Result<CelMap<'static>, PolicyError> {
        let fields = self.parts.user.as_object();
        object(fields.into_iter().flatten().filter(|(key, _)| keys.has(key)), 0, left)
    }

    fn recent(&self, keys: &Keys, left: &mut Left) -> Result<CelMap<'static>, PolicyError> {
        let mut map = HashMap::new();
        let (mut name, mut instead) = (self.parts.recent_name, None);
        match &self.next {
            Next::Nothing => {}
            Next::Pending(of, inputs) => instead = Some((*of, pending(self.parts.recent.get(*of), inputs))),
            Next::Made(of, entry) => {
                name = of;
                instead = Some((*of, entry.clone()));
            }
        }
        if keys.has("_name") {
            left.take(name.len() + 8)?;
            map.insert(key("_name"), Box::new(CelString::from(name.to_owned())) as Bound);
        }
        let replaced = instead.as_ref().map(|(of, _)| *of);
        let own = self.parts.recent.iter().filter(|(of, _)| Some(of.as_str()) != replaced);
        let own = own.map(|(of, entry)| (of.as_str(), entry));
        for (of, entry) in own.chain(instead.as_ref().map(|(of, entry)| (*of, entry))) {
            if keys.has(of) {
                left.take(of.len() + 4)?;
                map.insert(key(of), cel(entry, 1, left)?);
            }
        }
        left.saw(map.len());
        Ok(CelMap::from(map))
    }

    fn history(&self, keys: &Keys, left: &mut Left) -> Result<CelMap<'static>, PolicyError> {
        let parts = &self.parts;
        let mut map: HashMap<_, Bound> = HashMap::new();
        let made = match &self.next {
            Next::Made(of, entry) => Some((*of, entry)),
            _ => None,
        };
        if keys.has("_total") {
            left.take(16)?;
            let total = parts.list.len() + usize::from(made.is_some());
            map.insert(key("_total"), Box::new(CelInt::from(i64::try_from(total).unwrap_or(i64::MAX))));
        }
        if keys.has("_list") {
            let last = made.map(|(of, _)| Value::from(of));
            map.insert(key("_list"), parts.kept.list("_list", parts.list, last.as_ref(), left)?);
        }
        let unheard = made.map(|(of, _)| of).filter(|of| !parts.history.contains_key(*of));
        for of in parts.history.keys().map(String::as_str).chain(unheard) {
            if keys.has(of) {
                let calls = parts.history.get(of).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let last = made.filter(|(name, _)| *name == of).map(|(_, entry)| entry);
                map.insert(key(of), parts.kept.list(of, calls, last, left)?);
            }
        }
        left.saw(map.len());
        Ok(CelMap::from(map))
    }
}

/// Returns the entry of a tool that is about to be called: its most recent outputs stay what they were.
fn pending(recent: Option<&Value>, inputs: &Value) -> Value {
    let mut entry = json!({"inputs": inputs});
    if let Some(outputs) = recent.and_then(|recent| recent.get("outputs")) {
        entry["outputs"] = outputs.clone();
    }
    entry
}

fn timestamp(value: &str) -> Result<Bound, PolicyError> {
    let time = DateTime::parse_from_rfc3339(value)
        .map_err(|_| PolicyError::Input("`started_at` is not an RFC 3339 time".to_owned()))?;
    Ok(Box::new(CelTimestamp::from(time)))
}

/// Returns the variables of a guardrail's assertion: the keys of the tool's output, and the whole of it as `output`
/// (OAS-45).
pub(super) fn of_output(output: &Value) -> Result<(Vec<(String, Bound)>, Read), PolicyError> {
    let mut left = Left::new(MAX_BYTES, MAX_LIST);
    let mut variables = Vec::new();
    for (name, value) in output.as_object().into_iter().flatten() {
        variables.push((name.clone(), cel(value, 1, &mut left)?));
    }
    if variables.iter().all(|(name, _)| name != "output") {
        variables.push(("output".to_owned(), cel(output, 1, &mut left)?));
    }
    Ok((variables, read(MAX_BYTES, &left)))
}

/// Returns the size of what was read of this many bytes.
fn read(bytes: usize, left: &Left) -> Read {
    Read { longest: left.longest() as u64, bytes: (bytes - left.bytes()) as u64 }
}
