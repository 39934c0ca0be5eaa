//! Engagements and the Engagement object that assertions, reviewers and `exposes` see (OAS-54 … OAS-65).

use crate::policy::view::{Next, Parts};
use crate::policy::{Kept, View};
use crate::session_state::Operation;
use crate::tool_call::{ToolCall, ToolOutcome};
use crate::{AgentDefinition, EngagementId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The user of an engagement whose caller named none.
const ANONYMOUS: &str = "anonymous";

/// The user of an engagement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct User {
    /// Unique within the server; `anonymous` when the caller named no user.
    pub id: String,
    /// If known.
    pub email: Option<String>,
}

impl User {
    /// Returns true if the caller named a user.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.id != ANONYMOUS
    }
}

impl Default for User {
    fn default() -> Self {
        Self { id: ANONYMOUS.to_owned(), email: None }
    }
}

/// An engagement to be created together with its first job, or the one that a job continues.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NewEngagement {
    /// Its id.
    pub id: EngagementId,
    /// The agent as it is now: a later change of the registered agent does not affect it.
    pub agent: AgentDefinition,
    /// The user.
    pub user: User,
    /// The number of agents above it that the caller knows of; the store counts those above it on this server, and the
    /// larger number is its depth.
    #[serde(default)]
    pub depth: i64,
}

/// An engagement as stored.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Engagement {
    /// Its id; OSSA's session id.
    pub id: EngagementId,
    /// The agent's name.
    pub agent: String,
    /// The user.
    pub user: User,
    /// When it began.
    pub started_at: Timestamp,
    /// Turns committed so far.
    pub turns: i64,
}

/// The Engagement object: exactly what OpenAgentSpec lets an expression see, and nothing else.
#[derive(Clone, PartialEq, Debug)]
pub struct EngagementObject {
    started_at: Timestamp,
    user: User,
    recent_name: String,
    recent: Map<String, Value>,
    list: Vec<Value>,
    history: Map<String, Value>,
    kept: Kept,
}

impl EngagementObject {
    /// Returns the object before the first call: `history.<name>` is `[]` for every declared capability.
    #[must_use]
    pub fn begin(engagement: &Engagement, agent: &AgentDefinition) -> Self {
        Self {
            started_at: engagement.started_at,
            user: engagement.user.clone(),
            recent_name: String::new(),
            recent: Map::new(),
            list: Vec::new(),
            history: agent.capabilities.iter().map(|c| (c.name.clone(), json!([]))).collect(),
            kept: Kept::default(),
        }
    }

    /// Reads the object back from its JSON.
    #[cfg(test)]
    pub(crate) fn from_json(json: &Value) -> Option<Self> {
        let map = |name: &str| {
            let fields = json[name].as_object()?.iter().filter(|(key, _)| !key.starts_with('_'));
            Some(fields.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>())
        };
        Some(Self {
            started_at: Timestamp::parse_rfc3339(json["started_at"].as_str()?)?,
            user: serde_json::from_value(json["user"].clone()).ok()?,
            recent_name: json["recent"]["_name"].as_str()?.to_owned(),
            recent: map("recent")?,
            list: json["history"]["_list"].as_array()?.clone(),
            history: map("history")?,
            kept: Kept::default(),
        })
    }

    /// Adds earlier calls from the journal, in order. Only calls that were really made count.
    pub fn replay(&mut self, calls: &[ToolCall]) {
        for call in calls.iter().filter(|call| !call.is_note()) {
            let is_one = self.is_capability(&call.name);
            if let Some(outcome) = call.outcome.as_ref().filter(|outcome| is_one && outcome.was_invoked()) {
                let outputs = if call.withheld { Value::Null } else { outputs_of(outcome) };
                // Another capability may have replaced it.
                let name = call.provider.as_ref().unwrap_or(&call.name);
                self.record(name, call.input.clone(), outputs);
            }
        }
    }

    /// Operations on the agent's own state are in the journal too, and are no invocations of a tool or an agent.
    fn is_capability(&self, name: &str) -> bool {
        self.history.contains_key(name) || !Operation::is_one(name)
    }

    /// Records an invocation (OAS-59 … OAS-65).
    pub fn record(&mut self, name: &str, inputs: Value, outputs: Value) {
        let entry = json!({"inputs": inputs, "outputs": outputs});
        self.recent_name = name.to_owned();
        self.recent.insert(name.to_owned(), entry.clone());
        self.list.push(name.into());
        if let Value::Array(calls) = self.history.entry(name).or_insert_with(|| json!([])) {
            calls.push(entry);
        }
    }

    /// Shows the outputs of the latest invocation of `name`, which were withheld until a reviewer agreed.
    pub fn reveal(&mut self, name: &str, outputs: &Value) {
        if let Some(entry) = self.recent.get_mut(name) {
            entry["outputs"] = outputs.clone();
        }
        if let Some(entry) =
            self.history.get_mut(name).and_then(Value::as_array_mut).and_then(|calls| calls.last_mut())
        {
            entry["outputs"] = outputs.clone();
        }
        self.kept.changed_last(name);
    }

    /// Returns the object without the words of models: without the inputs of calls, and without the outputs of those that are
    /// no tools.
    #[must_use]
    pub fn without_words(&self, is_tool: impl Fn(&str) -> bool) -> Self {
        let mut object = Self { kept: Kept::default(), ..self.clone() };
        let hide = |name: &str, entry: &mut Value| {
            entry["inputs"] = Value::Null;
            if !is_tool(name) {
                entry["outputs"] = Value::Null;
            }
        };
        object.recent.iter_mut().for_each(|(name, entry)| hide(name, entry));
        for (name, calls) in &mut object.history {
            calls.as_array_mut().into_iter().flatten().for_each(|entry| hide(name, entry));
        }
        object
    }

    /// Returns the object as it is.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View { parts: self.parts(), next: Next::Nothing }
    }

    /// Returns the view of an input restriction: pending inputs are the tool's most recent ones; nothing else has
    /// happened.
    #[must_use]
    pub fn with_pending<'a>(&'a self, name: &'a str, inputs: &'a Value) -> View<'a> {
        View { parts: self.parts(), next: Next::Pending(name, inputs) }
    }

    /// Returns the view of an output restriction: the invocation as if it were already part of the object.
    #[must_use]
    pub fn with_made<'a>(&'a self, name: &'a str, inputs: &Value, outputs: &Value) -> View<'a> {
        View { parts: self.parts(), next: Next::Made(name, json!({"inputs": inputs, "outputs": outputs})) }
    }

    fn parts(&self) -> Parts<'_> {
        Parts {
            started_at: self.started_at.to_rfc3339(),
            user: json!({"id": self.user.id, "email": self.user.email}),
            recent_name: &self.recent_name,
            recent: &self.recent,
            list: &self.list,
            history: &self.history,
            kept: &self.kept,
        }
    }

    /// Returns the object as JSON, with the exact field names of the specification.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.view().to_json()
    }
}

/// Returns the value of `outputs` for an outcome.
#[must_use]
pub fn outputs_of(outcome: &ToolOutcome) -> Value {
    match outcome {
        ToolOutcome::Success { output } => output.clone(),
        ToolOutcome::Error { code, message, .. } => json!({"error": {"code": code, "message": message}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Capability;

    fn object() -> EngagementObject {
        let engagement = Engagement {
            id: "e".into(),
            agent: "a".into(),
            user: User { id: "u-17".into(), email: None },
            started_at: Timestamp(0),
            turns: 0,
        };
        let agent = AgentDefinition {
            capabilities: vec![Capability::named("search-faqs"), Capability::named("create-ticket")],
            ..AgentDefinition::default()
        };
        EngagementObject::begin(&engagement, &agent)
    }

    #[test]
    fn field_names_are_those_of_the_specification() {
        let mut e = object();
        e.record("search-faqs", json!({"path": "public/a"}), json!({"pages": [1]}));
        let call = json!({"inputs": {"path": "public/a"}, "outputs": {"pages": [1]}});
        assert_eq!(
            e.to_json(),
            json!({
                "started_at": "1970-01-01T00:00:00.000Z",
                "user": {"id": "u-17", "email": null},
                "recent": {"_name": "search-faqs", "search-faqs": call},
                "history": {"_list": ["search-faqs"], "_total": 1, "search-faqs": [call], "create-ticket": []},
            })
        );
    }

    #[test]
    fn pending_inputs_are_visible_before_the_call_has_happened() {
        let (object, inputs) = (object(), json!({"path": "x"}));
        let view = object.with_pending("search-faqs", &inputs).to_json();
        assert_eq!(view["recent"]["search-faqs"]["inputs"]["path"], "x");
        assert_eq!(view["recent"]["_name"], "");
        assert_eq!(view["history"]["_total"], 0);
    }
}
