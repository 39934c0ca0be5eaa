//! The question that a job waits with, and the command that answers it.

use crate::output::table::plain;
use crate::output::text;
use serde_json::Value;
use turnstone_api::answers::State;

/// A question of an agent to its user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    engagement: String,
    call_id: String,
    keys: Vec<(String, String)>,
}

impl Question {
    /// Returns the question that an engagement waits with; `None` when there is none.
    #[must_use]
    pub fn of(engagement: &State) -> Option<Self> {
        let awaiting = engagement.awaiting.as_ref()?;
        Self::read(&engagement.engagement_id, awaiting.call_id.as_deref()?, awaiting.request_keys.as_ref()?)
    }

    /// Returns the question of a call, with its keys as an event `input.requested` has them; `None` when there is none.
    #[must_use]
    pub fn read(engagement: &str, call_id: &str, keys: &Value) -> Option<Self> {
        let keys = keys
            .as_object()?
            .iter()
            .map(|(key, requested)| (text::line(key), text::line(&plain(requested))))
            .collect();
        Some(Self { engagement: engagement.to_owned(), call_id: call_id.to_owned(), keys })
    }

    /// Returns the question, on one line. The key of the only question is left out.
    #[must_use]
    pub fn asked(&self) -> String {
        match self.keys.as_slice() {
            [(_, requested)] if !requested.is_empty() => requested.clone(),
            keys => keys
                .iter()
                .map(|(key, requested)| format!("{key}: {requested}"))
                .collect::<Vec<_>>()
                .join("; "),
        }
    }

    /// Returns the call that asks.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Returns the requested keys, each with its meaning.
    #[must_use]
    pub fn keys(&self) -> &[(String, String)] {
        &self.keys
    }

    /// Returns the command that answers it, ready for a POSIX shell once each `VALUE` is replaced.
    #[must_use]
    pub fn command(&self) -> String {
        let call = text::quoted(&text::line(&self.call_id));
        let mut command =
            format!("turnstone engagement answer {} --call {call}", text::line(&self.engagement));
        if self.keys.iter().any(|(key, _)| key.starts_with('-')) {
            command.push_str(" --");
        }
        for (key, _) in &self.keys {
            command.push(' ');
            command.push_str(&text::quoted(&format!("{key}=VALUE")));
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question(keys: Value) -> Question {
        Question::read("e", "c", &keys).unwrap()
    }

    #[test]
    fn a_question_names_its_keys_and_its_command() {
        let one = question(json!({"answer": "Where to?"}));
        assert_eq!(one.asked(), "Where to?");
        assert_eq!(one.command(), "turnstone engagement answer e --call c answer=VALUE");
        let two = question(json!({"city": "Where to?", "day": "When?"}));
        assert_eq!(two.asked(), "city: Where to?; day: When?");
        assert_eq!(two.command(), "turnstone engagement answer e --call c city=VALUE day=VALUE");
        assert_eq!(Question::read("e", "c", &json!(null)), None);
    }

    #[test]
    fn a_key_runs_nothing_in_the_shell() {
        let keys = question(json!({"-x; rm 'a'": "?", "$(id)": "?"})).command();
        assert!(keys.ends_with(r"--call c -- '-x; rm '\''a'\''=VALUE' '$(id)=VALUE'"), "{keys}");
    }
}
