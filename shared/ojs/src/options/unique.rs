//! `options.unique` (OJS unique jobs §3): the values that make two jobs the same, and the treatment of a duplicate.

use super::canonical::canonical;
use super::section::{Section, duration};
use crate::{OjsError, read};
use serde_json::{Map, Value};
use turnstone_domain::terms::{OnConflict, Unique};
use turnstone_domain::{JobState, RawJson, RawObject, digest};

/// The states in which a job conflicts with another one unless the policy sets others.
const STATES: [JobState; 5] =
    [JobState::Available, JobState::Active, JobState::Scheduled, JobState::Retryable, JobState::Pending];

/// At most this many members of arguments and of meta are compared.
const MOST_NAMES: usize = 100;

/// The policy as it was sent, checked.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct UniquePolicy {
    queue: bool,
    args: bool,
    args_keys: Vec<String>,
    meta_keys: Vec<String>,
    period_ms: Option<i64>,
    states: Vec<JobState>,
    on_conflict: OnConflict,
}

impl UniquePolicy {
    pub(super) fn read(members: &RawObject) -> Result<Self, OjsError> {
        let sent = Section { path: "options.unique", members };
        sent.spelled(&["keys", "key", "args_keys", "meta_keys", "period", "states", "on_conflict"])?;
        let keys = match sent.given("keys", keys)? {
            Some(keys) => keys,
            None => sent.given("key", keys)?.unwrap_or_default(),
        };
        let has = |name: &str| keys.iter().any(|key| key == name);
        let args_keys = sent.given("args_keys", member_names)?.unwrap_or_default();
        let meta_keys = sent.given("meta_keys", member_names)?.unwrap_or_default();
        if has("meta") && meta_keys.is_empty() {
            return Err(sent.wrong("meta_keys", "is missing; it says which members of meta are compared"));
        }
        Ok(Self {
            queue: has("queue"),
            args: has("args") || !args_keys.is_empty(),
            args_keys,
            meta_keys,
            period_ms: sent.given("period", duration)?,
            states: sent.given("states", states)?.unwrap_or_else(|| STATES.to_vec()),
            on_conflict: sent.given("on_conflict", on_conflict)?.unwrap_or_default(),
        })
    }

    /// Returns the uniqueness of this job under the policy.
    ///
    /// # Errors
    /// 400 when a member that is compared cannot be read.
    pub(crate) fn of_job(
        self,
        job_type: &str,
        queue: &str,
        args: &RawJson,
        meta: &RawObject,
    ) -> Result<Unique, OjsError> {
        let mut compared = Map::new();
        compared.insert("type".to_owned(), job_type.into());
        if self.queue {
            compared.insert("queue".to_owned(), queue.into());
        }
        if self.args {
            let args = read::value(args).map_err(|why| out_of_range("args", &why))?;
            compared.insert("args".to_owned(), self.compared_args(args));
        }
        if !self.meta_keys.is_empty() {
            let member = |name: &String| {
                let value = meta.get(name).map_or(Ok(Value::Null), read::value);
                value
                    .map(|value| (name.clone(), value))
                    .map_err(|why| out_of_range(&format!("meta.{name}"), &why))
            };
            let members: Map<String, Value> = self.meta_keys.iter().map(member).collect::<Result<_, _>>()?;
            compared.insert("meta".to_owned(), members.into());
        }
        Ok(Unique {
            fingerprint: digest::of_text(&canonical(&Value::Object(compared))),
            period_ms: self.period_ms,
            states: self.states,
            on_conflict: self.on_conflict,
        })
    }

    /// Returns all arguments, or the named members of those that are objects.
    fn compared_args(&self, args: Value) -> Value {
        let Value::Array(items) = args else { return args };
        if self.args_keys.is_empty() {
            return Value::Array(items);
        }
        let named = |object: &Map<String, Value>| {
            let member = |name: &String| object.get(name).map(|value| (name.clone(), value.clone()));
            Value::Object(self.args_keys.iter().filter_map(member).collect())
        };
        Value::Array(items.iter().filter_map(Value::as_object).map(named).collect())
    }
}

fn out_of_range(field: &str, why: &str) -> OjsError {
    OjsError::invalid_request(field, format!("{why}, and options.unique compares it"))
}

/// Reads a list of the compared things; one word for one thing is the older spelling.
fn keys(value: &Value) -> Result<Vec<String>, String> {
    let keys = match value {
        Value::String(one) => vec![one.clone()],
        _ => read::texts(value)?,
    };
    match keys.iter().find(|key| !matches!(key.as_str(), "type" | "queue" | "args" | "meta")) {
        None => Ok(keys),
        Some(other) => {
            Err(format!("must be of type, queue, args and meta, not `{}`", read::shortened(other, 40)))
        }
    }
}

fn member_names(value: &Value) -> Result<Vec<String>, String> {
    match read::texts(value)? {
        names if names.len() > MOST_NAMES => Err(format!("must name at most {MOST_NAMES} members")),
        names => Ok(names),
    }
}

fn states(value: &Value) -> Result<Vec<JobState>, String> {
    let words = read::texts(value)?;
    if words.is_empty() {
        return Err("must name at least one state".to_owned());
    }
    let state = |word: &String| {
        let words = JobState::ALL.map(JobState::as_str).join(", ");
        JobState::parse(word)
            .ok_or_else(|| format!("must be of {words}, not `{}`", read::shortened(word, 40)))
    };
    words.iter().map(state).collect()
}

fn on_conflict(value: &Value) -> Result<OnConflict, String> {
    match read::text(value)? {
        "reject" => Ok(OnConflict::Reject),
        "replace" => Ok(OnConflict::Replace),
        "replace_except_schedule" => Ok(OnConflict::ReplaceExceptSchedule),
        "ignore" | "use_existing" => Ok(OnConflict::Ignore),
        other => Err(format!(
            "must be reject, replace, replace_except_schedule or ignore, not `{}`",
            read::shortened(other, 40)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(policy: Value) -> Result<UniquePolicy, OjsError> {
        UniquePolicy::read(&RawObject::of(policy.as_object().unwrap()))
    }

    fn print(policy: &Value, job: &Value) -> String {
        let meta = RawObject::of(job["meta"].as_object().unwrap_or(&Map::new()));
        let queue = job["queue"].as_str().unwrap_or("default");
        let policy = read(policy.clone()).unwrap();
        policy.of_job("a.b", queue, &RawJson::of(&job["args"]), &meta).unwrap().fingerprint
    }

    #[test]
    fn defaults_and_older_spellings() {
        let policy = read(json!({})).unwrap();
        assert_eq!((policy.args, policy.queue, policy.on_conflict), (false, false, OnConflict::Reject));
        assert_eq!((policy.states, policy.period_ms), (STATES.to_vec(), None));
        let older = read(json!({"key": "args", "on_conflict": "use_existing", "period": "PT1H"})).unwrap();
        assert_eq!(
            (older.args, older.on_conflict, older.period_ms),
            (true, OnConflict::Ignore, Some(3_600_000))
        );
        let states = read(json!({"states": ["completed"], "keys": ["queue"]})).unwrap().states;
        assert_eq!(states, [JobState::Completed]);
    }

    #[test]
    fn only_what_is_named_is_compared() {
        let one = json!({"queue": "q", "args": [{"to": "a", "n": 1}], "meta": {"m": 1, "x": 1}});
        let other = json!({"queue": "r", "args": [{"n": 1.0, "to": "b"}], "meta": {"x": 2, "m": 1.0}});
        for (policy, same) in [
            (json!({}), true),
            (json!({"keys": ["queue"]}), false),
            (json!({"keys": ["type", "args"]}), false),
            (json!({"keys": ["args"], "args_keys": ["n"]}), true),
            (json!({"keys": ["args"], "args_keys": ["to"]}), false),
            (json!({"keys": ["meta"], "meta_keys": ["m"]}), true),
            (json!({"keys": ["meta"], "meta_keys": ["m", "x"]}), false),
        ] {
            assert_eq!(print(&policy, &one) == print(&policy, &other), same, "{policy}");
        }
        let key = print(&json!({}), &one);
        assert_eq!(key, digest::of_text(r#"{"type":"a.b"}"#));
        assert_eq!(
            print(&json!({"keys": ["args"]}), &json!({"args": [{"b": 1, "a": "x"}]})),
            digest::of_text(r#"{"args":[{"a":"x","b":1}],"type":"a.b"}"#)
        );
    }

    #[test]
    fn wrong_policies_are_named() {
        for (policy, field) in [
            (json!({"keys": ["color"]}), "keys"),
            (json!({"keys": 5}), "keys"),
            (json!({"key": ["what"]}), "key"),
            (json!({"keys": ["meta"]}), "meta_keys"),
            (json!({"args_keys": "to"}), "args_keys"),
            (json!({"meta_keys": vec!["m"; 101]}), "meta_keys"),
            (json!({"period": "soon"}), "period"),
            (json!({"period": "PT0S"}), "period"),
            (json!({"states": ["asleep"]}), "states"),
            (json!({"states": []}), "states"),
            (json!({"on_conflict": "shrug"}), "on_conflict"),
        ] {
            let error = read(policy).unwrap_err();
            assert_eq!(error.details["field"], format!("options.unique.{field}"), "{error}");
            assert_eq!((error.status, error.code), (400, "invalid_request"));
        }
    }

    #[test]
    fn numbers_of_any_size_are_compared_by_their_value() {
        let fingerprint = |args: &str| {
            let (args, meta) = (RawJson::from_text(args.to_owned()).unwrap(), RawObject::new());
            read(json!({"keys": ["args"]})).unwrap().of_job("a", "q", &args, &meta).unwrap().fingerprint
        };
        assert_eq!(fingerprint("[1e400]"), fingerprint("[10e399]"));
        assert_ne!(fingerprint("[12345678901234567890123]"), fingerprint("[12345678901234567890124]"));
    }
}
