//! The messages, calls and reviews so far: of the turns before, and of this one.
//!
//! The word `recalled` marks what was read from the store after a claim, because an earlier attempt wrote it.

use super::claimed::Claimed;
use super::conversation::Conversation;
use super::journal::Call;
use super::outbox::Outbox;
use super::stop::Stop;
use super::tools::{Bindings, ResolBody};
use serde_json::Value;
use std::sync::Arc;
use turnstone_domain::engagement::EngagementObject;
use turnstone_domain::fork::{Origin, Recorded};
use turnstone_domain::memory::BEFORE;
use turnstone_domain::message::{Message, RequestedCall};
use turnstone_domain::review::ReviewAnswer;
use turnstone_domain::session_state::Buffer;
use turnstone_domain::short_circuit::ShortCircuit;
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{CallId, EngagementId, Identified, JobId};
use turnstone_store::Delegated;

/// The origin of a forked engagement, with the recorded calls that the fork reuses.
pub struct Fork {
    /// The origin, and the changes of the fork.
    pub origin: Origin,
    /// The recorded calls, whose outcomes the fork reuses for the same calls.
    pub recorded: Recorded,
    /// The call that handed control over, and the recorded answer of the agent that took over.
    pub handed_over: Option<(CallId, Value)>,
    /// The result of RESOL in this turn, when `turnstone engagement replay` runs recorded turns again.
    pub resolved: Option<(ResolBody, Bindings)>,
}

/// The past of a turn.
#[derive(Default)]
pub struct TurnHistory {
    /// The messages that the model sees.
    pub conversation: Conversation,
    /// The rows of the tool journal that an earlier attempt wrote for the current turn.
    pub recalled_calls: Vec<ToolCall>,
    /// Calls of earlier turns that a client asked to repeat.
    pub again: Vec<ToolCall>,
    /// Notes about remote work for calls of the current turn that this process made.
    pub noted: Vec<CallId>,
    /// Reviews about calls of the current turn.
    pub reviews: Vec<ReviewAnswer>,
    /// The delegations of the current turn's calls, past and open, as of the claim.
    pub delegations: Vec<Delegated>,
    /// The values that the agent's CEL expressions may read (OpenAgentSpec's Engagement object); `None` when none of them
    /// reads it.
    pub object: Option<EngagementObject>,
    /// The count of repeated calls, when the agent's document has `short_circuit` (OAS-53).
    pub short_circuit: Option<ShortCircuit>,
    /// The agent's state as the turn has read and changed it, after the first read.
    pub buffer: Option<Buffer>,
    /// The origin of the engagement, if it is a fork.
    pub fork: Option<Box<Fork>>,
}

impl TurnHistory {
    /// Adds a message to the current conversation of the engagement; it becomes durable with the next barrier.
    pub fn say(&mut self, outbox: &mut Outbox, message: Message) {
        let thread = self.conversation.thread().map(str::to_owned);
        self.say_in(outbox, thread, message);
    }

    /// Adds a message to the conversation with this name; `None` is the one with the user. The agents of a team have
    /// conversations of their own.
    pub fn say_in(&mut self, outbox: &mut Outbox, thread: Option<String>, message: Message) {
        self.push(outbox, outbox.position.turn, Message { thread, ..message });
    }

    /// Adds a message of an earlier engagement, before the first turn of this one.
    pub fn say_before(&mut self, outbox: &mut Outbox, message: Message) {
        self.push(outbox, BEFORE, message);
    }

    fn push(&mut self, outbox: &mut Outbox, turn: i64, message: Message) {
        let message = Arc::new(message);
        outbox.pending.messages.push((turn, Arc::clone(&message)));
        self.conversation.push(turn, message, &outbox.claimed.agent.memory);
    }

    /// Returns the row of a call of the current turn, if an earlier attempt wrote one.
    #[must_use]
    pub fn row(&self, call: &CallId) -> Option<&ToolCall> {
        self.recalled_calls.iter().find(|row| row.call_id == *call)
    }

    /// Returns a call that the model of this turn requested, with the state of its row.
    #[must_use]
    pub fn call(&self, position: usize, asked: RequestedCall) -> Call {
        let journalled = self.row(&asked.call_id).map(|row| row.state);
        Call { asked, position, journalled, stub_of: None }
    }

    /// Takes the rows of the tool journal: those of this turn, and those to repeat.
    pub fn take_journal(&mut self, turn: i64, journal: Vec<ToolCall>) {
        let (current, earlier): (Vec<_>, Vec<_>) = journal.into_iter().partition(|call| call.turn == turn);
        self.recalled_calls = current;
        self.again = earlier.into_iter().filter(|call| call.again).collect();
    }

    /// Returns the ids for the next delegate that answers a call in this turn. A turn that runs again finds the delegates
    /// that it has, so only the same delegate gets the same ids.
    #[must_use]
    pub fn child_of(
        &self,
        outbox: &Outbox,
        (call, position): (&CallId, usize),
        turn: i64,
    ) -> (JobId, EngagementId) {
        // A question about the next turn is the first of that turn.
        let is_current = turn == outbox.position.turn;
        let earlier = self.delegations.iter().filter(|done| is_current && done.call_id == *call);
        let number = earlier.count();
        let job = outbox.claimed.id_in(turn, Identified::ChildJob { call, position, number });
        let engagement = outbox.claimed.id_in(turn, Identified::ChildEngagement { call, position, number });
        (JobId(job), EngagementId(engagement))
    }

    /// Returns number and id of the next note about a call.
    #[must_use]
    pub fn next_note(&self, call: &CallId) -> (usize, CallId) {
        let ids = self.recalled_calls.iter().map(|row| &row.call_id).chain(&self.noted);
        let last = ids.filter_map(|other| ToolCall::note_number(other, call)).max();
        let number = last.map_or(0, |last| last + 1);
        (number, ToolCall::note_id(call, number))
    }

    /// Reads the journal again, after an operator asked for a repetition.
    ///
    /// # Errors
    /// [`Stop::Store`].
    pub async fn look_again(&mut self, claimed: &Claimed, turn: i64) -> Result<(), Stop> {
        let recall = claimed.deps.ledger.reads().recall(&claimed.job.id, turn, 0, false).await?;
        self.take_journal(turn, recall.tool_calls);
        Ok(())
    }

    /// Builds the Engagement object again from the journal, after calls of earlier turns were repeated.
    ///
    /// # Errors
    /// [`Stop::Store`].
    pub async fn replay_object(&mut self, claimed: &Claimed, turn: i64) -> Result<(), Stop> {
        if self.object.is_none() {
            return Ok(());
        }
        let recall = claimed.deps.ledger.reads().recall(&claimed.job.id, turn, 0, true).await?;
        let mut object = EngagementObject::begin(&claimed.engagement, &claimed.agent);
        object.replay(&recall.tool_calls);
        self.object = Some(object);
        Ok(())
    }

    /// Forgets calls, reviews and state of a complete turn.
    pub fn end_turn(&mut self) {
        self.buffer = None;
        self.recalled_calls.clear();
        self.noted.clear();
        self.reviews.clear();
        self.delegations.clear();
    }
}
