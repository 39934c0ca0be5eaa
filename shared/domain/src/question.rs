//! An agent's questions to its user: the arguments of the built-in tool `ask_user`, and the answers (agents brief §4.1,
//! Agent Protocol `WaitForInput` and `ResumeWithInput`).

use crate::CallId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The names of the tool. Names of OpenAgentSpec have no underscores.
pub const TOOLS: [&str; 2] = ["ask_user", "ask-user"];
/// The key of a question that is answered with a yes or a no.
pub const APPROVE: &str = "approve";
/// The member of a question's input that marks it as a confirmation of the next turn (OSSA §4).
pub const CONFIRMS_TURN: &str = "confirms_turn";
/// The key of a question that names none.
const ANSWER: &str = "answer";
/// Keys of one question.
const MOST_KEYS: usize = 32;
/// Characters of a key.
const LONGEST_KEY: usize = 128;
/// Bytes of the answers to one question.
const MOST_BYTES: usize = 1024 * 1024;

/// A question: keys and their meanings, in the agent's order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    keys: Vec<(String, String)>,
}

/// A question that a job waits with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskedUser {
    /// The call whose outcome the answer becomes.
    pub call_id: CallId,
    /// The question.
    pub question: Question,
    /// The values that the agent exposes when it asks (OAS-47).
    pub exposes: Map<String, Value>,
}

/// An answer to a question.
#[derive(Clone, PartialEq, Debug)]
pub enum Said {
    /// A value for each key; other keys are ignored.
    Values(Map<String, Value>),
    /// One text, for a question with one key.
    Text(String),
}

impl Said {
    /// Returns the values for the keys of a question, as far as they are present; `None` for a text when there are
    /// several keys.
    #[must_use]
    pub fn to(&self, question: &Question) -> Option<Map<String, Value>> {
        match self {
            Self::Values(values) => Some(values.clone()),
            Self::Text(text) => {
                question.only_key().map(|key| Map::from_iter([(key.to_owned(), text.as_str().into())]))
            }
        }
    }

    /// Returns true if it answers a question.
    #[must_use]
    pub fn fits(&self, question: &Question) -> bool {
        self.to(question).is_some_and(|values| question.answered(&values).is_ok())
    }

    /// Returns true if it has a value for each key of the accepted answer; the values may differ.
    #[must_use]
    pub fn could_be(&self, counted: &Map<String, Value>) -> bool {
        match self {
            Self::Values(values) => counted.keys().all(|key| values.contains_key(key)),
            Self::Text(_) => counted.len() == 1,
        }
    }

    /// Returns true if it equals an accepted answer; other keys are ignored.
    #[must_use]
    pub fn is(&self, counted: &Map<String, Value>) -> bool {
        match self {
            Self::Values(values) => counted.iter().all(|(key, value)| values.get(key) == Some(value)),
            Self::Text(text) => counted.len() == 1 && counted.values().all(|value| value == text.as_str()),
        }
    }
}

/// Why answers do not answer a question.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unanswered {
    /// These keys have no value.
    #[error("no value for {}", .0.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "))]
    Missing(Vec<String>),
    /// The values are longer than a conversation carries.
    #[error("the values have more than {MOST_BYTES} bytes")]
    TooLong,
}

/// The input of a call that the client executes, as the journal keeps it: a question for the result of a tool.
#[derive(Debug, Serialize, Deserialize)]
pub struct ClientCall {
    /// The key of the result, and its meaning.
    pub request_keys: Map<String, Value>,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// The schemas of its outputs.
    pub returns: Vec<Value>,
}

impl Question {
    /// Returns the schema of the arguments.
    #[must_use]
    pub fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "minLength": 1, "description": "One question; its answer comes as `answer`."},
                "request_keys": {
                    "type": "object", "minProperties": 1, "maxProperties": MOST_KEYS,
                    "additionalProperties": {"type": "string"},
                    "description": "Several questions: a key for each answer, and what is asked.",
                },
            },
            "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
        })
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// A sentence for the model.
    pub fn read(arguments: &Value) -> Result<Self, String> {
        let keys: Vec<(String, String)> = match (&arguments["question"], &arguments["request_keys"]) {
            (Value::String(question), Value::Null) => vec![(ANSWER.to_owned(), question.clone())],
            (Value::Null, Value::Object(keys)) => keys
                .iter()
                .map(|(key, requested)| (key.clone(), requested.as_str().unwrap_or_default().to_owned()))
                .collect(),
            _ => return Err("give either `question`, or `request_keys` with what each key means".to_owned()),
        };
        if keys.is_empty() || keys.len() > MOST_KEYS {
            return Err(format!("1 to {MOST_KEYS} keys can be asked for at once"));
        }
        if keys.iter().any(|(key, _)| key.is_empty() || key.chars().count() > LONGEST_KEY) {
            return Err(format!("a key has 1 to {LONGEST_KEY} characters"));
        }
        Ok(Self { keys })
    }

    /// Returns the keys and their meanings.
    #[must_use]
    pub fn request_keys(&self) -> Value {
        let keys: Map<String, Value> =
            self.keys.iter().map(|(key, requested)| (key.clone(), requested.as_str().into())).collect();
        keys.into()
    }

    /// Returns the one key, when there is only one.
    #[must_use]
    pub fn only_key(&self) -> Option<&str> {
        match self.keys.as_slice() {
            [(key, _)] => Some(key),
            _ => None,
        }
    }

    /// Returns the question as text for a reader.
    #[must_use]
    pub fn prompt(&self) -> String {
        match self.keys.as_slice() {
            [(_, requested)] if !requested.is_empty() => requested.clone(),
            keys => keys
                .iter()
                .map(|(key, requested)| format!("{key}: {requested}"))
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    /// Returns all words of the question, for those who check it: also the name of a single key that its author chose.
    #[must_use]
    pub fn whole_text(&self) -> String {
        match self.keys.as_slice() {
            [(key, requested)] if key != ANSWER => format!("{key}: {requested}"),
            _ => self.prompt(),
        }
    }

    /// Makes the answer from the given values: those of the question's keys and no others.
    ///
    /// # Errors
    /// The keys without a value, or that the values are too long.
    pub fn answered(&self, given: &Map<String, Value>) -> Result<Value, Unanswered> {
        let lacks = |key: &str| given.get(key).is_none_or(Value::is_null);
        let missing: Vec<String> =
            self.keys.iter().filter(|(key, _)| lacks(key)).map(|(key, _)| key.clone()).collect();
        if !missing.is_empty() {
            return Err(Unanswered::Missing(missing));
        }
        let values: Map<String, Value> =
            self.keys.iter().filter_map(|(key, _)| Some((key.clone(), given.get(key)?.clone()))).collect();
        let answer = Value::Object(values);
        if answer.to_string().len() > MOST_BYTES { Err(Unanswered::TooLong) } else { Ok(answer) }
    }
}

/// Returns a person's yes or no: `true` or `false`, as a boolean or a text, or the text `yes` or `no`. Any other value is
/// neither.
#[must_use]
pub fn agreement(answer: &Value) -> Option<bool> {
    match answer {
        Value::Bool(agreed) => Some(*agreed),
        Value::String(text) => match text.as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if a tool of this name asks the user.
#[must_use]
pub fn is_one(tool: &str) -> bool {
    TOOLS.contains(&tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_keys_or_one_answer() {
        let plain = Question::read(&json!({"question": "Where to?"})).unwrap();
        assert_eq!((plain.only_key(), plain.prompt().as_str()), (Some("answer"), "Where to?"));
        let several = json!({"request_keys": {"to": "Where to?", "at": "When?"}});
        let several = Question::read(&several).unwrap();
        assert_eq!((several.only_key(), several.prompt().as_str()), (None, "to: Where to?\nat: When?"));
        for bad in [
            json!({}),
            json!({"question": 1}),
            json!({"request_keys": {}}),
            json!({"request_keys": {"": "x"}}),
            json!({"question": "x", "request_keys": {"a": "b"}}),
        ] {
            assert!(Question::read(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_the_exact_words_are_a_yes_or_a_no() {
        for (answer, agreed) in [(json!(true), true), (json!("true"), true), (json!("yes"), true)] {
            assert_eq!(agreement(&answer), Some(agreed), "{answer}");
        }
        for answer in [json!(false), json!("false"), json!("no")] {
            assert_eq!(agreement(&answer), Some(false), "{answer}");
        }
        for neither in [
            json!(1),
            json!("1"),
            json!(null),
            json!([true]),
            json!({"approve": true}),
            json!(""),
            json!("Yes"),
            json!("TRUE"),
            json!("y"),
            json!("ok"),
            json!("continue"),
            json!("approve"),
            json!("yes, but"),
            json!("yes?"),
            json!("```\nyes\n```"),
        ] {
            assert_eq!(agreement(&neither), None, "{neither}");
        }
    }

    #[test]
    fn every_key_has_to_be_answered_and_others_are_left_out() {
        let question = Question::read(&json!({"request_keys": {"to": "Where to?", "at": "When?"}})).unwrap();
        let given = |value: Value| value.as_object().cloned().unwrap();
        let missing = question.answered(&given(json!({"to": "Oslo", "at": null}))).unwrap_err();
        assert_eq!(
            (missing.to_string().as_str(), &missing),
            ("no value for `at`", &Unanswered::Missing(vec!["at".into()]))
        );
        let answer = question.answered(&given(json!({"more": 1, "at": 7, "to": "Oslo"}))).unwrap();
        assert_eq!(answer, json!({"to": "Oslo", "at": 7}));
        let long = given(json!({"to": "x".repeat(MOST_BYTES), "at": 1}));
        assert_eq!(question.answered(&long), Err(Unanswered::TooLong));
    }

    #[test]
    fn a_text_answers_a_question_with_one_key() {
        let one = Question::read(&json!({"request_keys": {"to": "Where to?"}})).unwrap();
        let two = Question::read(&json!({"request_keys": {"to": "Where to?", "at": "When?"}})).unwrap();
        let counted = |value: Value| value.as_object().cloned().unwrap();
        let text = Said::Text("Oslo".into());
        assert!(text.fits(&one) && !text.fits(&two));
        assert_eq!(text.to(&one), Some(counted(json!({"to": "Oslo"}))));
        assert!(text.is(&counted(json!({"city": "Oslo"}))) && !text.is(&counted(json!({"city": "Rome"}))));
        assert!(!text.is(&counted(json!({"to": "Oslo", "at": "Oslo"}))));
        let values = Said::Values(counted(json!({"to": "Oslo", "more": 1})));
        assert!(values.fits(&one) && !values.fits(&two));
        assert!(values.is(&counted(json!({"to": "Oslo"}))) && !values.is(&counted(json!({"at": 1}))));
        assert!(
            values.could_be(&counted(json!({"to": "Rome"}))) && !values.could_be(&counted(json!({"at": 1})))
        );
    }
}
