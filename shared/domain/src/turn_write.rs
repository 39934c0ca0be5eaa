//! The writes of a turn that the ledger commits in one transaction, under its lease.

use crate::artifact::NewArtifact;
use crate::budget::{BudgetMove, ChargeMove};
use crate::guardrail_check::GuardrailCheck;
use crate::memory::Remember;
use crate::message::Message;
use crate::session_state::StateCommit;
use crate::tool_call::ToolCallMove;
use crate::{CallId, NewCheckpoint, NewEvent, Phase, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The end of an engagement's record: how often it was written under a lease, and its last checkpoint.
///
/// A lease proves that no other worker writes. It does not prove that the database still has what this worker wrote: after a
/// failover to a standby that misses commits, the lease fits an older record. So each write of a turn names the end that it
/// follows, and a record that ends elsewhere refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordEnd {
    /// The number of writes under leases.
    pub writes: i64,
    /// The turn of the last checkpoint; 0 without one.
    pub turn: i64,
    /// The phase of the last checkpoint.
    pub phase: Option<Phase>,
}

impl RecordEnd {
    /// Returns the end after a further checkpoint.
    #[must_use]
    pub fn after(self, turn: i64, phase: Phase) -> Self {
        Self { turn, phase: Some(phase), ..self }
    }

    /// Returns the phase as it is stored: its number, or -1 without one.
    #[must_use]
    pub fn phase_number(self) -> i64 {
        self.phase.map_or(-1, Phase::number)
    }
}

impl fmt::Display for RecordEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.phase {
            Some(phase) => write!(f, "write {}, at turn {}, phase {phase}", self.writes, self.turn),
            None => write!(f, "write {}, before the first turn", self.writes),
        }
    }
}

/// The new rows that a turn makes durable at a barrier. All of them are committed, or none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TurnWrite {
    /// The end of the record that this write follows. Each write of a worker names it.
    pub follows: Option<RecordEnd>,
    /// Phases that are done, in order.
    pub checkpoints: Vec<NewCheckpoint>,
    /// New messages of the engagement, with the turn that wrote each.
    pub messages: Vec<(i64, Arc<Message>)>,
    /// New or changed rows of the tool journal.
    pub tool_calls: Vec<ToolCallMove>,
    /// Files that calls made, with the turn of each.
    pub artifacts: Vec<(i64, NewArtifact)>,
    /// The checks of guardrails.
    pub checks: Vec<GuardrailCheck>,
    /// New events of the engagement.
    pub events: Vec<NewEvent>,
    /// At most one movement of the engagement's budget.
    pub budget: Option<BudgetMove>,
    /// Changes of the agent's state, committed together or not at all.
    pub state: Option<StateCommit>,
    /// At most one movement of money and of the budgets that the engagement shares with others.
    pub charge: Option<Box<ChargeMove>>,
    /// The position of the job after this write, when it moved to another turn.
    pub position: Option<Position>,
    /// With the settlement of a job that completes: the request to remember its exchange.
    pub remember: Option<Remember>,
}

impl TurnWrite {
    /// Returns true if there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_none(number: &u32) -> bool {
    *number == 0
}

/// The position of a job between turns: small, rewritten once a turn.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Position {
    /// The turn that runs next, 1-based within the engagement.
    pub turn: i64,
    /// Consecutive turns that asked for tools (OSSA §4, `max_tool_turns`).
    pub tool_turns: u32,
    /// The number of requests to the model to give its answer in the demanded form.
    pub reasks: u32,
    /// The turn with which the job began, and which takes its input; 0 means 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub begins: i64,
    /// Turns that a reviewer granted beyond `max_turns`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub granted: i64,
    /// The call whose outcome its user provides; set as long as the job waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<CallId>,
    /// The time at which waiting for a raise of a budget ends; set when the job parks for it, cleared when a call fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise_until: Option<Timestamp>,
    /// The agent to which control was handed over, by its name: it is the agent of the inputs that follow.
    #[serde(rename = "heir", default, skip_serializing_if = "Option::is_none")]
    pub handoff_agent: Option<String>,
    /// How often an attempt ended because the provider of the model was away or busy; no failure of the work (see
    /// [`RetryPolicy::number`](crate::retry::RetryPolicy::number)).
    #[serde(default, skip_serializing_if = "is_none")]
    pub outages: u32,
    /// The model that answered last, if any did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_used: Option<String>,
    /// The answer that a provider keeps and that is not recorded yet, so that it is fetched and not bought again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_answer: Option<Box<KeptAnswer>>,
}

/// An answer that a provider keeps under an id.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptAnswer {
    /// The provider.
    pub provider: String,
    /// The provider's id of the answer.
    pub id: String,
    /// The digest of the request that it answers.
    pub request_sha256: String,
}

impl Position {
    /// Returns true if the turn that runs next is the one that takes the job's input.
    #[must_use]
    pub fn takes_input(&self) -> bool {
        self.turn == self.begins.max(1)
    }

    /// Returns the position of the next turn of the job.
    #[must_use]
    pub fn following(&self) -> Self {
        let turn = self.turn + 1;
        Self {
            turn,
            tool_turns: 0,
            reasks: 0,
            asks: None,
            raise_until: None,
            kept_answer: None,
            ..self.clone()
        }
    }
}
