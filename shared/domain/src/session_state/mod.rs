//! State that an agent keeps between turns: keys with JSON values, changed in the transaction of a turn (OSSA §1.6,
//! §3).
//!
//! It is read and changed by operations that the model may call as tools. A turn's changes wait in a [`Buffer`]. They
//! are committed with the checkpoint of PERSIST, or dropped when the turn fails. Conversation, journal, tokens and
//! events are not state: they are a record and are never rolled back (D10).

mod buffer;
mod operation;

pub use buffer::{Buffer, StateChange};
pub use operation::{Operation, TOOLS};

use crate::agent::{Identity, StateMode};
use crate::engagement::Engagement;
use crate::{AgentDefinition, RawObject, Timestamp, trace_context};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The longest name of a key, in bytes.
pub const MOST_KEY_BYTES: usize = 256;
/// The longest value, in bytes of JSON.
pub const MOST_VALUE_BYTES: usize = 256 * 1024;
/// Keys of one scope.
pub const MOST_KEYS: usize = 1024;
/// Bytes of all values of one scope.
pub const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Changes of one turn.
pub const MOST_CHANGES: usize = 256;
/// Named checkpoints of one turn.
pub const MOST_CHECKPOINTS: usize = 32;

/// A key with its value, as committed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StateEntry {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The version of the scope that wrote it.
    pub version: i64,
    /// When it was written.
    pub updated_at: Timestamp,
    /// When it is forgotten.
    pub expires_at: Option<Timestamp>,
}

/// All keys of a scope at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StateSnapshot {
    /// How often the scope was changed; 0 when nothing was ever written to it.
    pub version: i64,
    /// The keys, by name.
    pub entries: Vec<StateEntry>,
}

/// Changes to be committed together.
#[derive(Clone, PartialEq, Debug)]
pub struct StateCommit {
    /// The scope of the keys.
    pub scope: Scope,
    /// The versions that must be unchanged.
    pub expect: Expect,
    /// The new value of each changed key.
    pub writes: Vec<StateWrite>,
}

/// The new value of a key.
#[derive(Clone, PartialEq, Debug)]
pub struct StateWrite {
    /// Its name.
    pub key: String,
    /// Its value; `None` when it is deleted.
    pub value: Option<Value>,
    /// When it is forgotten.
    pub expires_at: Option<Timestamp>,
}

/// The versions that must be unchanged for a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expect {
    /// Nothing: the last one wins.
    Anything,
    /// The whole scope has this version.
    Scope(i64),
    /// These keys have these versions; 0 is a key that is not there.
    Keys(Vec<(String, i64)>),
}

/// The scope of keys: the name under which they are stored, and their lifetime.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Scope {
    /// Unique within the store.
    pub name: String,
    /// True if the keys are deleted with the engagement.
    pub of_engagement: bool,
}

impl Scope {
    /// Returns the scope of one engagement.
    #[must_use]
    pub fn of_one(engagement: &Engagement) -> Self {
        Self { name: format!("engagement {}", engagement.id), of_engagement: true }
    }

    /// Returns the scope of a fork's state, which no other engagement shares; `None` when the agent keeps none.
    #[must_use]
    pub fn of_fork(agent: &AgentDefinition, engagement: &Engagement) -> Option<Self> {
        (agent.state.mode != StateMode::Stateless).then(|| Self::of_one(engagement))
    }

    /// Returns the scope of an agent's state; `None` when it keeps none.
    ///
    /// State that outlives an engagement belongs to a user of the agent. Without a user it belongs to the session that
    /// the caller names. Without either it ends with the engagement: strangers never share state.
    #[must_use]
    pub fn of(agent: &AgentDefinition, engagement: &Engagement, meta: &RawObject) -> Option<Self> {
        let own = || Self::of_one(engagement);
        let shared = |who: Value| Self { name: format!("agent {who}"), of_engagement: false };
        let tenant = meta.get("tenant_id").and_then(|tenant| tenant.parse::<String>().ok());
        let user = &engagement.user.id;
        match agent.state.mode {
            StateMode::Stateless => None,
            StateMode::Session => Some(own()),
            StateMode::LongRunning if *user != crate::engagement::User::default().id => {
                Some(shared(json!([tenant, agent.name, "user", user])))
            }
            StateMode::LongRunning => Some(
                inherited_session(&agent.identity, meta)
                    .map_or_else(own, |session| shared(json!([tenant, agent.name, "session", session]))),
            ),
        }
    }
}

/// Returns the session that a caller names in the job's `meta`: `session_id`, or `ossa.session.id` of the baggage
/// (RS-03).
#[must_use]
pub fn inherited_session(identity: &Identity, meta: &RawObject) -> Option<String> {
    if !identity.inherit_session {
        return None;
    }
    let text = |name: &str| meta.get(name).and_then(|value| value.parse::<String>().ok());
    let carried = || {
        let mut baggage =
            text("baggage").filter(|_| identity.baggage).and_then(|all| trace_context::baggage(&all))?;
        baggage.remove("ossa.session.id")
    };
    text("session_id").or_else(carried).filter(|session| (1..=128).contains(&session.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::StateOptions;
    use crate::engagement::User;

    fn scope(mode: StateMode, user: &str, meta: &Value) -> Option<Scope> {
        let state = StateOptions { mode, ..StateOptions::default() };
        let agent = AgentDefinition { name: "desk".into(), state, ..AgentDefinition::default() };
        let engagement = Engagement {
            id: "e1".into(),
            agent: "desk".into(),
            user: User { id: user.into(), email: None },
            started_at: Timestamp(0),
            turns: 0,
        };
        Scope::of(&agent, &engagement, &serde_json::from_value(meta.clone()).unwrap())
    }

    /// RS-03 and D15: state that outlives an engagement has an owner.
    #[test]
    fn strangers_never_share_state() {
        let name = |mode, user, meta| scope(mode, user, &meta).map(|scope| scope.name);
        assert_eq!(name(StateMode::Stateless, "u", json!({})), None);
        assert_eq!(name(StateMode::Session, "u", json!({})).unwrap(), "engagement e1");
        let long = StateMode::LongRunning;
        assert_eq!(name(long, "anonymous", json!({})).unwrap(), "engagement e1");
        let of_user = name(long, "u", json!({"tenant_id": "t"})).unwrap();
        assert_ne!(of_user, name(long, "u", json!({})).unwrap(), "tenants are apart");
        assert_ne!(of_user, name(long, "v", json!({"tenant_id": "t"})).unwrap());
        let named = name(long, "anonymous", json!({"session_id": "s"})).unwrap();
        assert_eq!(named, name(long, "anonymous", json!({"baggage": "ossa.session.id=s"})).unwrap());
        assert_ne!(named, name(long, "s", json!({})).unwrap(), "a session is no user");
    }
}
