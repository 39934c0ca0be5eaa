//! A turn's view of the state and its changes: committed keys below, its own changes above.

use super::{
    Expect, MOST_BYTES, MOST_CHANGES, MOST_CHECKPOINTS, MOST_KEY_BYTES, MOST_KEYS, MOST_VALUE_BYTES,
    Operation, Scope, StateCommit, StateEntry, StateSnapshot, StateWrite,
};
use crate::Timestamp;
use crate::agent::{Isolation, StateOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A change as the audit shows it (RS-31).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct StateChange {
    /// The key.
    pub key: String,
    /// The old value; `null` when the key did not exist.
    pub previous_value: Value,
    /// The new value; `null` when the key is deleted.
    pub new_value: Value,
    /// `set`, `delete` or `append`.
    pub operation: String,
    /// When.
    pub timestamp: Timestamp,
}

/// A value and when it is forgotten; no value is a key that was deleted.
#[derive(Clone, PartialEq, Debug)]
struct Kept {
    value: Option<Value>,
    bytes: usize,
    expires_at: Option<Timestamp>,
}

struct Point {
    name: String,
    writes: BTreeMap<String, Kept>,
    changes: usize,
}

/// A turn's view of the state, and its changes.
pub struct Buffer {
    isolation: Isolation,
    ttl_seconds: Option<i64>,
    /// The longest lifetime of a key, in seconds, even when the model sets a longer one.
    most_seconds: Option<i64>,
    version: i64,
    /// The version that an earlier process read in the same turn, when it differs: then the operations of both do not
    /// fit together.
    read_before: Option<i64>,
    base: BTreeMap<String, (i64, Kept)>,
    writes: BTreeMap<String, Kept>,
    changes: Vec<StateChange>,
    points: Vec<Point>,
    made: usize,
}

impl Buffer {
    /// Returns a turn that has changed nothing yet.
    #[must_use]
    pub fn new(options: &StateOptions, snapshot: StateSnapshot) -> Self {
        let mut buffer = Self {
            isolation: options.isolation,
            ttl_seconds: options.ttl_seconds.or(options.retention_ms.map(|ms| ms / 1000)),
            most_seconds: options.retention_ms.map(|ms| ms / 1000),
            version: 0,
            read_before: None,
            base: BTreeMap::new(),
            writes: BTreeMap::new(),
            changes: Vec::new(),
            points: Vec::new(),
            made: 0,
        };
        buffer.see(snapshot);
        buffer
    }

    /// Returns true if each operation reads the state that is committed at its moment.
    #[must_use]
    pub fn looks_each_time(&self) -> bool {
        matches!(self.isolation, Isolation::ReadUncommitted | Isolation::ReadCommitted)
    }

    /// Returns true if changes take effect at once.
    #[must_use]
    pub fn writes_at_once(&self) -> bool {
        self.isolation == Isolation::ReadUncommitted
    }

    /// Replaces the committed state by this snapshot.
    pub fn see(&mut self, snapshot: StateSnapshot) {
        self.version = snapshot.version;
        self.base = snapshot
            .entries
            .into_iter()
            .map(|StateEntry { key, value, version, expires_at, .. }| {
                (key, (version, Kept { bytes: value.to_string().len(), value: Some(value), expires_at }))
            })
            .collect();
    }

    /// Returns the version of the state that the turn reads.
    #[must_use]
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Applies an operation that an earlier process did in the same turn; `version` is the version that it had read.
    pub fn repeat(&mut self, operation: &Operation, version: Option<i64>, at: Timestamp) {
        if version.is_some_and(|version| version != self.version) {
            self.read_before = version;
        }
        // It succeeded before; if it fails now, the state has changed, and the commit detects that.
        let _ = self.apply(operation, at);
    }

    /// Does an operation. Reads see the turn's own changes.
    ///
    /// # Errors
    /// A sentence for the model: a bound, a key that is no list, an unknown checkpoint.
    pub fn apply(&mut self, operation: &Operation, now: Timestamp) -> Result<Value, String> {
        match operation {
            Operation::Get(key) => {
                checked(key)?;
                let value = self.get(key, now);
                Ok(json!({"key": key, "found": value.is_some(), "value": value}))
            }
            Operation::GetMany(keys) => {
                if keys.len() > MOST_KEYS {
                    return Err(format!("at most {MOST_KEYS} keys are read at once"));
                }
                let found: Map<String, Value> =
                    keys.iter().filter_map(|key| Some((key.clone(), self.get(key, now)?.clone()))).collect();
                Ok(json!({"values": found}))
            }
            Operation::Exists(key) => {
                checked(key)?;
                Ok(json!({"key": key, "exists": self.get(key, now).is_some()}))
            }
            Operation::Set { key, value, ttl } => {
                let ttl = ttl.or(self.ttl_seconds);
                if ttl.is_some_and(|seconds| seconds < 1) {
                    return Err("a `ttl` is a number of seconds, at least 1".to_owned());
                }
                let ttl = ttl.map(|seconds| self.most_seconds.map_or(seconds, |most| seconds.min(most)));
                let expires_at = ttl.map(|seconds| now.plus_ms(seconds.saturating_mul(1000)));
                self.write("set", key, Some(value.clone()), expires_at, now)?;
                Ok(json!({"key": key, "set": true}))
            }
            Operation::Delete(key) => {
                let there = self.get(key, now).is_some();
                self.write("delete", key, None, None, now)?;
                Ok(json!({"key": key, "deleted": there}))
            }
            Operation::Append { key, value } => {
                let expires_at = self.kept(key).and_then(|kept| kept.expires_at);
                let mut list = match self.get(key, now) {
                    None => Vec::new(),
                    Some(Value::Array(items)) => items.clone(),
                    Some(_) => return Err(format!("`{key}` is no list, so nothing can be appended to it")),
                };
                let expires_at = match list.is_empty() {
                    true => self.ttl_seconds.map(|seconds| now.plus_ms(seconds.saturating_mul(1000))),
                    false => expires_at,
                };
                list.push(value.clone());
                let items = list.len();
                self.write("append", key, Some(Value::Array(list)), expires_at, now)?;
                Ok(json!({"key": key, "items": items}))
            }
            Operation::Checkpoint => self.mark(),
            Operation::Rollback(name) => self.back_to(name.as_deref()),
        }
    }

    fn kept(&self, key: &str) -> Option<&Kept> {
        self.writes.get(key).or_else(|| self.base.get(key).map(|(_, kept)| kept))
    }

    fn get(&self, key: &str, now: Timestamp) -> Option<&Value> {
        let kept = self.kept(key)?;
        kept.value.as_ref().filter(|_| kept.expires_at.is_none_or(|at| at > now))
    }

    fn write(
        &mut self,
        operation: &str,
        key: &str,
        value: Option<Value>,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), String> {
        checked(key)?;
        let bytes = value.as_ref().map_or(0, |value| value.to_string().len());
        if bytes > MOST_VALUE_BYTES {
            return Err(format!(
                "the value of `{key}` has {bytes} bytes; at most {MOST_VALUE_BYTES} are kept"
            ));
        }
        if self.changes.len() >= MOST_CHANGES {
            return Err(format!("a turn changes the state at most {MOST_CHANGES} times"));
        }
        if value.is_some() {
            self.check_room(key, bytes)?;
        }
        self.changes.push(StateChange {
            key: key.to_owned(),
            previous_value: self.get(key, now).cloned().unwrap_or_default(),
            new_value: value.clone().unwrap_or_default(),
            operation: operation.to_owned(),
            timestamp: now,
        });
        self.writes.insert(key.to_owned(), Kept { value, bytes, expires_at });
        Ok(())
    }

    fn check_room(&self, key: &str, bytes: usize) -> Result<(), String> {
        let below = self
            .base
            .iter()
            .filter(|(name, _)| !self.writes.contains_key(*name))
            .map(|(name, (_, kept))| (name, kept));
        let others = below.chain(&self.writes).filter(|(name, kept)| *name != key && kept.value.is_some());
        let (keys, total) =
            others.fold((1, bytes), |(keys, total), (_, kept)| (keys + 1, total + kept.bytes));
        if keys > MOST_KEYS {
            return Err(format!("the state has {MOST_KEYS} keys, which is the most; delete some first"));
        }
        if total > MOST_BYTES {
            return Err(format!("the state would have {total} bytes; at most {MOST_BYTES} are kept"));
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<Value, String> {
        if self.writes_at_once() {
            return Err("this agent's state is read_uncommitted: there is nothing to roll back to".to_owned());
        }
        if self.points.len() >= MOST_CHECKPOINTS {
            return Err(format!("a turn has at most {MOST_CHECKPOINTS} checkpoints"));
        }
        self.made += 1;
        let name = format!("checkpoint-{}", self.made);
        let (writes, changes) = (self.writes.clone(), self.changes.len());
        self.points.push(Point { name: name.clone(), writes, changes });
        Ok(json!({"checkpoint": name}))
    }

    fn back_to(&mut self, name: Option<&str>) -> Result<Value, String> {
        if self.writes_at_once() {
            return Err(
                "this agent's state is read_uncommitted: its changes cannot be rolled back".to_owned()
            );
        }
        let before = self.changes.len();
        match name {
            None => {
                self.writes.clear();
                self.changes.clear();
                self.points.clear();
            }
            Some(name) => {
                let at = self.points.iter().position(|point| point.name == name);
                let at = at.ok_or_else(|| format!("there is no checkpoint `{name}` in this turn"))?;
                // The checkpoint stays; those after it become invalid.
                self.points.truncate(at + 1);
                let point = &self.points[at];
                self.writes.clone_from(&point.writes);
                self.changes.truncate(point.changes);
            }
        }
        Ok(json!({"rolled_back": before - self.changes.len()}))
    }

    /// Returns every key with its value as the turn sees it now, by name.
    pub fn seen(&self, now: Timestamp) -> impl Iterator<Item = (&str, &Value)> {
        let below = self.base.iter().filter(|(key, _)| !self.writes.contains_key(*key));
        let mut all: Vec<(&String, &Kept)> =
            below.map(|(key, (_, kept))| (key, kept)).chain(&self.writes).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all.into_iter()
            .filter(move |(_, kept)| kept.expires_at.is_none_or(|at| at > now))
            .filter_map(|(key, kept)| Some((key.as_str(), kept.value.as_ref()?)))
    }

    /// Returns the turn's changes, in order.
    #[must_use]
    pub fn changes(&self) -> &[StateChange] {
        &self.changes
    }

    /// Returns the commit; `None` when nothing was changed.
    #[must_use]
    pub fn commit(&self, scope: &Scope) -> Option<StateCommit> {
        if self.writes.is_empty() {
            return None;
        }
        let seen = |key: &String| (key.clone(), self.base.get(key).map_or(0, |(version, _)| *version));
        let expect = match (self.isolation, self.read_before) {
            (Isolation::ReadUncommitted | Isolation::ReadCommitted, _) => Expect::Anything,
            (_, Some(version)) => Expect::Scope(version),
            (Isolation::RepeatableRead, None) => Expect::Keys(self.writes.keys().map(seen).collect()),
            (Isolation::Serializable, None) => Expect::Scope(self.version),
        };
        let writes = self.writes.iter().map(|(key, kept)| StateWrite {
            key: key.clone(),
            value: kept.value.clone(),
            expires_at: kept.expires_at,
        });
        Some(StateCommit { scope: scope.clone(), expect, writes: writes.collect() })
    }

    /// Marks the changes as committed; they stay only in the record of the turn.
    pub fn committed(&mut self) {
        self.writes.clear();
    }
}

fn checked(key: &str) -> Result<(), String> {
    if key.is_empty() || key.len() > MOST_KEY_BYTES {
        return Err(format!("a key has 1 to {MOST_KEY_BYTES} bytes, not {}", key.len()));
    }
    if key.chars().any(char::is_control) {
        return Err("a key has no control characters".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn buffer(isolation: Isolation, entries: &[(&str, Value)]) -> Buffer {
        let entry = |(key, value): &(&str, Value)| StateEntry {
            key: (*key).to_owned(),
            value: value.clone(),
            version: 3,
            updated_at: NOW,
            expires_at: None,
        };
        let snapshot = StateSnapshot { version: 7, entries: entries.iter().map(entry).collect() };
        Buffer::new(&StateOptions { isolation, ..StateOptions::default() }, snapshot)
    }

    fn run(buffer: &mut Buffer, tool: &str, arguments: Value) -> Result<Value, String> {
        buffer.apply(&Operation::read(tool, &arguments).unwrap(), NOW)
    }

    fn scope() -> Scope {
        Scope { name: "s".into(), of_engagement: true }
    }

    /// RS-28, RS-31: a turn sees its own changes, and the record has each of them.
    #[test]
    fn a_turn_sees_what_it_changed_and_records_it() {
        let mut b = buffer(Isolation::Serializable, &[("a", json!(1)), ("l", json!(["x"]))]);
        run(&mut b, "state_set", json!({"key": "a", "value": {"n": 2}})).unwrap();
        assert_eq!(run(&mut b, "state_get", json!({"key": "a"})).unwrap()["value"], json!({"n": 2}));
        assert_eq!(run(&mut b, "state_append", json!({"key": "l", "value": "y"})).unwrap()["items"], 2);
        assert_eq!(run(&mut b, "state_append", json!({"key": "new", "value": 1})).unwrap()["items"], 1);
        assert!(
            run(&mut b, "state_append", json!({"key": "a", "value": 1})).unwrap_err().contains("no list")
        );
        assert_eq!(run(&mut b, "state_delete", json!({"key": "l"})).unwrap()["deleted"], true);
        assert_eq!(run(&mut b, "state_exists", json!({"key": "l"})).unwrap()["exists"], false);
        assert_eq!(
            run(&mut b, "state_get_many", json!({"keys": ["a", "l", "new"]})).unwrap(),
            json!({"values": {"a": {"n": 2}, "new": [1]}})
        );
        let reported: Vec<_> =
            b.changes().iter().map(|c| (c.operation.as_str(), &c.previous_value)).collect();
        assert_eq!(
            reported,
            [
                ("set", &json!(1)),
                ("append", &json!(["x"])),
                ("append", &Value::Null),
                ("delete", &json!(["x", "y"]))
            ]
        );
        let commit = b.commit(&scope()).unwrap();
        let keys: Vec<_> = commit.writes.iter().map(|w| (w.key.as_str(), w.value.is_some())).collect();
        assert_eq!(keys, [("a", true), ("l", false), ("new", true)]);
    }

    /// OSSA §3: partial rollback to a named checkpoint; later checkpoints are invalid; an unknown one is an error.
    #[test]
    fn a_rollback_keeps_what_was_before_its_checkpoint() {
        let mut b = buffer(Isolation::Serializable, &[]);
        run(&mut b, "state_set", json!({"key": "a", "value": 1})).unwrap();
        let first = run(&mut b, "state_checkpoint", json!({})).unwrap()["checkpoint"].clone();
        run(&mut b, "state_set", json!({"key": "a", "value": 2})).unwrap();
        let second = run(&mut b, "state_checkpoint", json!({})).unwrap()["checkpoint"].clone();
        run(&mut b, "state_set", json!({"key": "b", "value": 3})).unwrap();
        assert_eq!(run(&mut b, "state_rollback", json!({"checkpoint": first})).unwrap()["rolled_back"], 2);
        assert_eq!(run(&mut b, "state_get", json!({"key": "a"})).unwrap()["value"], 1);
        assert!(
            run(&mut b, "state_rollback", json!({"checkpoint": second})).is_err(),
            "it was after the first"
        );
        assert!(run(&mut b, "state_rollback", json!({"checkpoint": first})).is_ok(), "the point stays");
        run(&mut b, "state_rollback", json!({})).unwrap();
        assert!(b.changes().is_empty() && b.commit(&scope()).is_none());
        assert!(run(&mut b, "state_rollback", json!({"checkpoint": first})).is_err(), "the turn began anew");
        let mut at_once = buffer(Isolation::ReadUncommitted, &[]);
        assert!(run(&mut at_once, "state_rollback", json!({})).is_err(), "rollback is disabled");
    }

    /// RS-30: what each level of isolation expects at its commit.
    #[test]
    fn each_level_expects_what_it_must() {
        let expected = |isolation| {
            let mut b = buffer(isolation, &[("a", json!(1))]);
            run(&mut b, "state_set", json!({"key": "a", "value": 2})).unwrap();
            run(&mut b, "state_set", json!({"key": "b", "value": 2})).unwrap();
            b.commit(&scope()).unwrap().expect
        };
        assert_eq!(expected(Isolation::ReadUncommitted), Expect::Anything);
        assert_eq!(expected(Isolation::ReadCommitted), Expect::Anything);
        assert_eq!(expected(Isolation::RepeatableRead), Expect::Keys(vec![("a".into(), 3), ("b".into(), 0)]));
        assert_eq!(expected(Isolation::Serializable), Expect::Scope(7));
        let mut resumed = buffer(Isolation::RepeatableRead, &[]);
        resumed.repeat(&Operation::Set { key: "a".into(), value: json!(1), ttl: None }, Some(6), NOW);
        assert_eq!(
            resumed.commit(&scope()).unwrap().expect,
            Expect::Scope(6),
            "the state has changed meanwhile"
        );
    }

    /// Bad input: a key or a value of 1 MB is refused, and bounds hold together.
    #[test]
    fn keys_values_and_their_sum_are_bounded() {
        let mut b = buffer(Isolation::Serializable, &[]);
        let mut set = |key: &str, value: Value| {
            let ttl = None;
            b.apply(&Operation::Set { key: key.to_owned(), value, ttl }, NOW)
        };
        assert!(set(&"k".repeat(1024 * 1024), json!(1)).is_err());
        assert!(set("", json!(1)).is_err() && set("a\nb", json!(1)).is_err());
        assert!(set("k", json!("v".repeat(1024 * 1024))).is_err());
        let large = json!("v".repeat(MOST_VALUE_BYTES - 2));
        for n in 0..MOST_BYTES / MOST_VALUE_BYTES {
            set(&format!("k{n}"), large.clone()).unwrap();
        }
        assert!(set("one-more", large.clone()).unwrap_err().contains("bytes"));
        set("k0", json!(1)).unwrap();
        set("one-more", json!(2)).unwrap();
        let many = (0..MOST_CHANGES).map(|n| set(&format!("m{n}"), json!(n))).filter(Result::is_err).count();
        assert!(many > 0, "changes are bounded, too");
    }

    #[test]
    fn a_key_is_forgotten_when_its_time_is_over() {
        let mut b = buffer(Isolation::Serializable, &[]);
        run(&mut b, "state_set", json!({"key": "a", "value": 1, "ttl": 2})).unwrap();
        let get = Operation::Get("a".into());
        assert_eq!(b.apply(&get, NOW.plus_ms(1999)).unwrap()["found"], true);
        assert_eq!(b.apply(&get, NOW.plus_ms(2000)).unwrap()["found"], false);
        assert!(b.apply(&Operation::Set { key: "a".into(), value: json!(1), ttl: Some(0) }, NOW).is_err());
    }
}
