//! The position up to which each engagement of a run was written.

use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use turnstone_domain::{EngagementId, JobId};

/// The position of one engagement, and its part in the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The number of the last event in its own stream that was read.
    pub seq: i64,
    /// The agent that speaks.
    pub agent: String,
    /// The number of agents between it and the caller.
    pub depth: i64,
    /// The request of the run that it works for; its own jobs are the requests at depth 0.
    #[serde(serialize_with = "whole")]
    pub request: Option<JobId>,
    /// The engagement that it works for.
    pub above: Option<EngagementId>,
    /// True if control is handed over to it: then it speaks for that engagement once it has answered.
    #[serde(default)]
    pub handoff: bool,
}

/// Serializes the unique form of an id.
fn whole<S: Serializer>(id: &Option<JobId>, serializer: S) -> Result<S::Ok, S::Error> {
    id.as_ref().map(JobId::as_str).serialize(serializer)
}

/// The marks of a run, as they are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Marks(BTreeMap<String, Mark>);

impl Marks {
    /// Reads the stored marks; a new run begins with its own engagement.
    pub fn read(text: &str, run: &EngagementId, agent: &str) -> Self {
        let kept: Option<Self> = serde_json::from_str(text).ok();
        kept.unwrap_or_else(|| {
            let mark = Mark {
                seq: 0,
                agent: agent.to_owned(),
                depth: 0,
                request: None,
                above: None,
                handoff: false,
            };
            Self(BTreeMap::from([(run.as_str().to_owned(), mark)]))
        })
    }

    /// Returns the marks as the text that is stored.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn of(&self, engagement: &EngagementId) -> Option<&Mark> {
        self.0.get(engagement.as_str())
    }

    pub fn put(&mut self, engagement: EngagementId, mark: Mark) {
        self.0.insert(engagement.as_str().to_owned(), mark);
    }

    pub fn move_to(&mut self, engagement: &EngagementId, seq: i64) {
        if let Some(mark) = self.0.get_mut(engagement.as_str()) {
            mark.seq = seq;
        }
    }

    pub fn forget(&mut self, engagement: &EngagementId) {
        self.0.remove(engagement.as_str());
    }

    /// Returns the delegates of this one.
    pub fn below(&self, engagement: &EngagementId) -> Vec<EngagementId> {
        let below = self.0.iter().filter(|(_, mark)| mark.above.as_ref() == Some(engagement));
        below.map(|(id, _)| EngagementId::from(id.as_str())).collect()
    }

    /// Returns all engagements whose events concern this run.
    pub fn all(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
