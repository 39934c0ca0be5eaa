//! A run and its followers: new events are written, and read, once for all of them.

use crate::doorbell::{Bells, Hook};
use crate::shared_stream::{Placed, SharedStream};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_domain::engagement::Engagement;
use turnstone_domain::{EngagementId, JobId};
use turnstone_store::RunEvent;

/// The most events that one stream holds in memory; fewer when they are long.
pub(super) const PAGE: u32 = 200;

/// An event of a run that is followed.
pub(super) struct RunFrame {
    /// Its number.
    pub id: i64,
    /// The request that it belongs to.
    pub request: Option<JobId>,
    /// The event as it is sent: JSON.
    pub body: String,
    /// Its role in a stream.
    pub what: What,
}

/// The role of an event in a stream.
pub(super) enum What {
    /// The request ends with it.
    Ends,
    /// The caller is sent a question.
    Asks,
    /// A model is called, and its pieces may follow from now on.
    Calls(AnswerKey, Caller),
    /// The model's answer.
    Answers(AnswerKey),
    /// No special role.
    Other,
}

/// The answer of a model: that of an engagement in a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AnswerKey {
    pub engagement: EngagementId,
    pub turn: i64,
}

/// The caller of a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Caller {
    pub agent: String,
    pub depth: i64,
    /// The request, as the client knows it.
    pub request_id: String,
}

#[derive(Deserialize)]
struct Glance {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    depth: i64,
    #[serde(default)]
    request_id: String,
    answer: Option<String>,
}

impl What {
    fn of(body: &str) -> Self {
        let Ok(Glance { kind, agent, depth, request_id, answer }) = serde_json::from_str(body) else {
            return Self::Other;
        };
        let answer = answer.as_deref().and_then(|answer| {
            let (engagement, turn) = answer.rsplit_once(':')?;
            Some(AnswerKey { engagement: engagement.into(), turn: turn.parse().ok()? })
        });
        match (kind.as_str(), answer) {
            ("request_completed", _) => Self::Ends,
            ("wait_for_input", _) => Self::Asks,
            ("completion_call", Some(answer)) => Self::Calls(answer, Caller { agent, depth, request_id }),
            ("completion_result", Some(answer)) => Self::Answers(answer),
            _ => Self::Other,
        }
    }
}

impl From<RunEvent> for RunFrame {
    fn from(event: RunEvent) -> Self {
        let RunEvent { id, request, body } = event;
        Self { id, request, what: What::of(&body), body }
    }
}

impl Placed for RunFrame {
    fn place(&self) -> i64 {
        self.id
    }

    fn size(&self) -> usize {
        self.body.len()
    }
}

/// A run that is followed.
pub(crate) struct RunStream {
    pub(super) run: Engagement,
    bells: Arc<Bells>,
    parts: Mutex<Parts>,
    pub(super) together: SharedStream<RunFrame>,
}

/// The engagements of the run that may have news.
struct Parts {
    hooks: BTreeMap<String, Hook>,
    names: Arc<[EngagementId]>,
}

impl RunStream {
    pub(super) fn new(bells: &Arc<Bells>, run: Engagement) -> Self {
        let together = SharedStream::new();
        let hook = bells.hang(run.id.as_str(), &together.bell);
        let hooks = BTreeMap::from([(run.id.0.clone(), hook)]);
        let parts = Mutex::new(Parts { hooks, names: Arc::from([run.id.clone()]) });
        Self { run, bells: Arc::clone(bells), parts, together }
    }

    /// Returns the run.
    pub(super) fn run(&self) -> &Engagement {
        &self.run
    }

    /// Returns the engagements of the run that may have news. The list is shared until it changes.
    pub(super) fn parts(&self) -> Arc<[EngagementId]> {
        Arc::clone(&self.parts.lock().unwrap_or_else(PoisonError::into_inner).names)
    }

    /// Hooks exactly these engagements. Returns true when one of them is new.
    pub(super) fn follow(&self, names: &[String]) -> bool {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let before = parts.hooks.len();
        parts.hooks.retain(|name, _| names.contains(name));
        let gone = parts.hooks.len() < before;
        let new: Vec<&String> = names.iter().filter(|name| !parts.hooks.contains_key(*name)).collect();
        let added = !new.is_empty();
        for name in new {
            parts.hooks.insert(name.clone(), self.bells.hang(name, &self.together.bell));
        }
        if gone || added {
            parts.names = parts.hooks.keys().map(|name| EngagementId::from(name.as_str())).collect();
        }
        added
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_events_own_members_decide_its_place_in_a_stream() {
        let call = json!({"type": "completion_call", "answer": "e-1:7", "agent": "a", "depth": 1, "request_id": "r"});
        let What::Calls(answer, caller) = What::of(&call.to_string()) else { panic!("no call") };
        assert_eq!((answer.engagement.as_str(), answer.turn), ("e-1", 7));
        assert_eq!((caller.agent.as_str(), caller.depth, caller.request_id.as_str()), ("a", 1, "r"));
        let ends = |body: serde_json::Value| matches!(What::of(&body.to_string()), What::Ends);
        assert!(ends(json!({"type": "request_completed"})));
        assert!(!ends(json!({"type": "tool_call", "args": {"type": "request_completed"}})));
        assert!(!ends(json!({"type": "text_output", "content": "\"type\":\"request_completed\""})));
    }
}
