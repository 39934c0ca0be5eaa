//! An engagement as one document: its whole record, so that it can move to another store and be run again without any
//! model or tool.
//!
//! The document has one JSON value per line: a head with the version of the format, then the parts, then a foot. The
//! foot counts the lines and carries the digest of everything above it, and a signature of the digest. An incomplete
//! document is refused.

mod artifacts;
mod gaps;
mod renamed;
mod signature;

use crate::agent::ToolSpec;
use crate::attest::Signature;
use crate::event::Event;
use crate::job::FailedAttempt;
use crate::message::StoredMessage;
use crate::review::Review;
use crate::session_state::StateEntry;
use crate::tool_call::ToolCall;
use crate::turn_write::Position;
use crate::{AgentDefinition, Checkpoint, EngagementId, JobId, JobState, NewJob, RawJson, Timestamp, digest};
use serde::{Deserialize, Serialize};

pub use artifacts::RecordedArtifact;
pub use gaps::{RecordGap, RecordedPhases, gaps};
pub use renamed::{NewIds, add_new_id, rename_calls};
pub use signature::signature_of;

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// The record of an engagement that has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct EngagementRecord {
    /// Its job as it was enqueued, with the agent and the user.
    pub job: NewJob,
    /// How the job ended.
    pub end: JobEnd,
    /// Its checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Its conversation, oldest first.
    pub messages: Vec<StoredMessage>,
    /// Its tool journal, in order.
    pub calls: Vec<ToolCall>,
    /// The files that its calls made, in order.
    pub artifacts: Vec<RecordedArtifact>,
    /// Its reviews, oldest first.
    pub reviews: Vec<Review>,
    /// Its events, oldest first.
    pub events: Vec<Event>,
    /// The agent's state as it was when the document was made.
    pub state: Vec<StateEntry>,
    /// The agents that it may call, as they were then.
    pub delegates: Vec<AgentDefinition>,
    /// The server's definitions of its tools then.
    pub tools: Vec<ToolSpec>,
}

/// How a job ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobEnd {
    /// In which terminal state.
    pub state: JobState,
    /// How often it was claimed.
    pub attempt: i64,
    /// How often it failed.
    pub failures: i64,
    /// When it was first claimed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its position between turns.
    pub position: Position,
    /// The tokens that it used.
    pub tokens_used: i64,
    /// Its result.
    pub result: Option<RawJson>,
    /// Failed attempts, oldest first.
    pub errors: Vec<FailedAttempt>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    turnstone_engagement: u32,
    engagement_id: EngagementId,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Job(Box<NewJob>),
    End(Box<JobEnd>),
    Checkpoint(Box<Checkpoint>),
    Message(Box<StoredMessage>),
    Call(Box<ToolCall>),
    Artifact(Box<RecordedArtifact>),
    Review(Box<Review>),
    Event(Box<Event>),
    State(Box<StateEntry>),
    #[serde(rename = "deputy")]
    Delegate(Box<AgentDefinition>),
    Tool(Box<ToolSpec>),
}

#[derive(Serialize, Deserialize)]
struct Foot {
    lines: usize,
    sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<Signature>,
}

impl EngagementRecord {
    /// Returns the engagement's id; empty for a job without one.
    #[must_use]
    pub fn engagement_id(&self) -> EngagementId {
        self.job.engagement.as_ref().map_or_else(|| EngagementId(String::new()), |new| new.id.clone())
    }

    /// Returns the turns and phases that it lacks. The last turn may end after any phase.
    #[must_use]
    pub fn gaps(&self) -> Vec<RecordGap> {
        let part = |done: &Checkpoint| RecordedPhases {
            turn: done.turn,
            first: done.phase.number(),
            count: 1,
            job: 0,
        };
        gaps(1, self.checkpoints.iter().map(part).collect(), None)
    }

    /// Assigns it to a tenant; without one, its tenant stays. The job's own claim of a tenant in `meta` is replaced by
    /// this one.
    pub fn belongs_to(&mut self, tenant: Option<String>) {
        let terms = &mut self.job.terms;
        terms.tenant = tenant.or_else(|| terms.tenant.take());
        self.job.id = JobId::chosen(self.job.id.shown(), terms.tenant.as_deref());
        let meta = &mut self.job.envelope.meta;
        let said = meta.given("tenant_id").map(|tenant| tenant.parse::<String>().ok());
        if said != terms.tenant.clone().map(Some) {
            meta.remove("tenant_id");
            if let Some(tenant) = &terms.tenant {
                meta.insert("tenant_id", tenant.as_str());
            }
        }
    }

    /// Returns the document without a signature.
    ///
    /// # Errors
    /// When a part cannot be written as JSON.
    pub fn write(&self) -> serde_json::Result<String> {
        self.write_signed(|_| None)
    }

    /// Returns the document with the signature of its digest.
    ///
    /// # Errors
    /// When a part cannot be written as JSON.
    pub fn write_signed(&self, sign: impl FnOnce(&str) -> Option<Signature>) -> serde_json::Result<String> {
        let head = Head { turnstone_engagement: VERSION, engagement_id: self.engagement_id() };
        let mut lines = vec![serde_json::to_string(&head)?];
        let mut add = |part: Part| serde_json::to_string(&part).map(|line| lines.push(line));
        add(Part::Job(Box::new(self.job.clone())))?;
        add(Part::End(Box::new(self.end.clone())))?;
        self.checkpoints.iter().try_for_each(|row| add(Part::Checkpoint(Box::new(row.clone()))))?;
        self.messages.iter().try_for_each(|row| add(Part::Message(Box::new(row.clone()))))?;
        self.calls.iter().try_for_each(|row| add(Part::Call(Box::new(row.clone()))))?;
        self.artifacts.iter().try_for_each(|row| add(Part::Artifact(Box::new(row.clone()))))?;
        self.reviews.iter().try_for_each(|row| add(Part::Review(Box::new(row.clone()))))?;
        self.events.iter().try_for_each(|row| add(Part::Event(Box::new(row.clone()))))?;
        self.state.iter().try_for_each(|row| add(Part::State(Box::new(row.clone()))))?;
        self.delegates.iter().try_for_each(|row| add(Part::Delegate(Box::new(row.clone()))))?;
        self.tools.iter().try_for_each(|row| add(Part::Tool(Box::new(row.clone()))))?;
        let mut text = lines.join("\n");
        text.push('\n');
        let sha256 = digest::of_text(&text);
        let signature = sign(&signature::signed_text(&sha256));
        let foot = Foot { lines: lines.len(), sha256, signature };
        text.push_str(&serde_json::to_string(&foot)?);
        text.push('\n');
        Ok(text)
    }

    /// Reads a document. The definitions of its agents have neither secrets nor marks of a server, whatever the document
    /// says.
    ///
    /// # Errors
    /// A sentence that names the problem and its place.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("the document is empty".to_owned());
        }
        let first = text.lines().next().unwrap_or_default();
        let head: Head = serde_json::from_str(first).map_err(|_| {
            "this is no engagement that Turnstone exported: its first line is not the head of one".to_owned()
        })?;
        if head.turnstone_engagement != VERSION {
            return Err(format!(
                "the document has version {} of the format, and this Turnstone reads version {VERSION}",
                head.turnstone_engagement
            ));
        }
        let body = whole(text)?;
        let (mut job, mut end) = (None, None);
        let (mut checkpoints, mut messages, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        let (mut reviews, mut events, mut state) = (Vec::new(), Vec::new(), Vec::new());
        let (mut delegates, mut tools, mut artifacts) = (Vec::new(), Vec::new(), Vec::new());
        for (at, line) in body.lines().enumerate().skip(1) {
            let part = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))?;
            match part {
                Part::Job(mut row) => {
                    row.engagement.iter_mut().for_each(|new| new.agent = new.agent.portable());
                    job = Some(*row);
                }
                Part::End(row) => end = Some(*row),
                Part::Checkpoint(row) => checkpoints.push(*row),
                Part::Message(row) => messages.push(*row),
                Part::Call(row) => calls.push(*row),
                Part::Artifact(row) => artifacts.push(*row),
                Part::Review(row) => reviews.push(*row),
                Part::Event(row) => events.push(*row),
                Part::State(row) => state.push(*row),
                Part::Delegate(row) => delegates.push(row.portable()),
                Part::Tool(row) => tools.push(*row),
            }
        }
        let job = job.filter(|job| job.engagement.is_some()).ok_or("the document has no job of an agent")?;
        let end = end.ok_or("the document does not say how the job ended")?;
        let record = Self {
            job,
            end,
            checkpoints,
            messages,
            calls,
            artifacts,
            reviews,
            events,
            state,
            delegates,
            tools,
        };
        record.agrees(&head.engagement_id)?;
        Ok(record)
    }

    /// Checks that its parts belong together.
    fn agrees(&self, engagement: &EngagementId) -> Result<(), String> {
        if self.engagement_id() != *engagement {
            return Err("the head names another engagement than the job".to_owned());
        }
        if !self.end.state.is_terminal() {
            return Err(format!("the job is {}, and only what has ended can be read", self.end.state));
        }
        let dense = (1..).zip(&self.messages).all(|(at, message)| message.seq == at);
        let ordered =
            self.checkpoints.windows(2).all(|two| (two[0].turn, two[0].phase) < (two[1].turn, two[1].phase));
        match (dense, ordered) {
            (false, _) => Err("the conversation has gaps".to_owned()),
            (_, false) => Err("the checkpoints are not in order".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Returns the text above the foot, if it matches the foot's count and digest.
fn whole(text: &str) -> Result<&str, String> {
    let cut = || {
        "the document is not whole: its last line, which counts and digests the others, is missing".to_owned()
    };
    let trimmed = text.trim_end_matches('\n');
    let at = trimmed.rfind('\n').ok_or_else(cut)?;
    let (body, last) = text.split_at(at + 1);
    let foot: Foot = serde_json::from_str(last).map_err(|_| cut())?;
    let lines = body.lines().count();
    if lines != foot.lines {
        return Err(format!("the document is not whole: it has {lines} lines of {}", foot.lines));
    }
    if digest::of_text(body) != foot.sha256 {
        return Err("the document was changed or damaged: its digest is not that of its last line".to_owned());
    }
    Ok(body)
}
