//! A turn in progress: its claim, its completed phases, and its writes that are not durable yet.
//!
//! One [`Turn`] lives as long as a lease: [`Turn::advance`] begins the next turn of the job in the same value. A phase reads
//! and changes it, and ends with [`Turn::complete_phase`]. Nothing that a phase records is durable before the next
//! barrier (`turn/barrier.rs`).
//!
//! The word `recalled` marks what was read from the store after a claim, because an earlier attempt wrote it.

use super::conversation::Conversation;
use super::deadline::Deadline;
use super::handoff;
use super::slot::TurnSlot;
use super::stop::Stop;
use super::trace::Trace;
use crate::deps::Deps;
use crate::flow::FlowRun;
use crate::phases::exec::delegates::KnownDelegate;
use crate::phases::exec::remote_calls::RemoteNotes;
use crate::phases::exec::reviewer::Reviewers;
use crate::phases::exec::state_call;
use crate::phases::infer::{self, InferBody};
use crate::phases::persist::{self, PersistBody};
use crate::phases::resol::{self, Bindings, ResolBody};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use turnstone_domain::budget::{AppliedBudget, Budget, BudgetMove, ChargeMove};
use turnstone_domain::engagement::{Engagement, EngagementObject};
use turnstone_domain::error::FailureKind;
use turnstone_domain::fork::{Origin, Recorded};
use turnstone_domain::memory::BEFORE;
use turnstone_domain::message::Message;
use turnstone_domain::question;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::review::ReviewAnswer;
use turnstone_domain::session_state::Buffer;
use turnstone_domain::short_circuit::ShortCircuit;
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{
    AgentDefinition, CallId, Checkpoint, EventData, EventName, JobError, JobId, Lease, NewCheckpoint,
    NewEvent, Phase, PhaseCompleted, RawJson, RawObject, Spent, TurnWrite,
};
use turnstone_store::{Claim, Delegated, Past, Recall};

/// The messages that are read on resume beyond the window of the agent's memory. An answer with its tool calls and
/// their outcomes fits in, even when a provider sends the most calls of one answer.
const RECALLED: u32 = 160;

/// The constant part of the claim.
pub struct JobFacts {
    /// The job.
    pub id: JobId,
    /// The number of earlier failed attempts.
    pub failures: i64,
    /// The retry policy.
    pub retry: RetryPolicy,
    /// The token budget that the job states.
    pub token_budget: Option<i64>,
    /// OJS `args`: the input.
    pub args: RawJson,
    /// The results of the jobs before it in its workflow, as JSON texts: the result of the job directly before it is
    /// first.
    pub parent_results: Option<Vec<String>>,
    /// OJS `meta`: trace context and baggage.
    pub meta: RawObject,
}

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

/// A turn in progress, and the turns that follow it under the same lease.
pub struct Turn {
    /// The parts that all turns of this worker share.
    pub deps: Arc<Deps>,
    /// The constant part of the claim.
    pub job: JobFacts,
    /// The end of this attempt's time, which waits for a write in progress.
    pub deadline: Arc<Deadline>,
    /// The right to write.
    pub lease: Lease,
    /// The engagement.
    pub engagement: Engagement,
    /// The agent as it was when the engagement began; later versions of its document do not change it. After a handoff it
    /// is the agent that took over, as it is now.
    pub agent: Arc<AgentDefinition>,
    /// The position of the job: the number of the current turn, and what the turns before it left.
    pub position: Position,
    /// The engagement's budget, as of the last write.
    pub budget: Budget,
    /// The budgets of tenants, agents, models and the fleet that its calls may be charged to as well, as of the claim.
    pub budgets: Vec<AppliedBudget>,
    /// The money paid in this phase for which the journal has no row, in millionths of the currency. The checkpoint of
    /// the phase records it.
    pub paid_before: i64,
    /// The messages that the model sees.
    pub conversation: Conversation,
    /// The rows of the tool journal that an earlier attempt wrote for the current turn.
    pub recalled_calls: Vec<ToolCall>,
    /// Calls of earlier turns that a client asked to repeat.
    pub again: Vec<ToolCall>,
    /// Reviews about calls of the current turn.
    pub reviews: Vec<ReviewAnswer>,
    /// The values that the agent's CEL expressions may read (OpenAgentSpec's Engagement object); `None` when none of them
    /// reads it.
    pub object: Option<EngagementObject>,
    /// The count of repeated calls, when the agent's document has `short_circuit` (OAS-53).
    pub short_circuit: Option<ShortCircuit>,
    /// The agent's state as the turn has read and changed it, after the first read.
    pub buffer: Option<Buffer>,
    /// The number of agents above this one.
    pub depth: i64,
    /// The delegations of the current turn's calls, past and open, as of the claim.
    pub delegations: Vec<Delegated>,
    /// The origin of the engagement, if it is a fork.
    pub fork: Option<Box<Fork>>,
    /// Its slot in this worker.
    pub slot: TurnSlot,
    /// Cancelled when the worker drains or the job is paused: the turn then stops before its next phase.
    pub draining: CancellationToken,
    /// The remote calls of the current turn.
    pub remote_calls: RemoteNotes,
    /// The delegates of the agent, once they are looked up.
    pub delegates: Option<Arc<BTreeMap<String, KnownDelegate>>>,
    /// The run of the flow, when the agent is one.
    pub flow: Option<Box<FlowRun>>,
    /// Its spans for OpenTelemetry.
    pub trace: Trace,
    /// The W3C `traceparent` of the span in which an earlier claim began the current turn.
    pub began_in: Option<String>,
    /// The agents that review its calls, once they are looked up.
    pub reviewers: Reviewers,
    /// The current turn's own id, once INIT is done.
    pub interaction_id: String,
    /// The result of RESOL, once it is known in this process.
    pub resolved: Option<Arc<ResolBody>>,
    /// The tools that RESOL bound to the agent's capabilities, once that happened in this process.
    pub bindings: Option<Arc<Bindings>>,
    /// The result of INFER, once it is known in this process.
    pub inferred: Option<Arc<InferBody>>,
    /// The result of PERSIST, once it is known in this process.
    pub persisted: Option<Arc<PersistBody>>,
    /// The number of completed phases of the current turn.
    done: usize,
    /// Version and body of the checkpoints that the claim returned, in the order of the phases.
    recalled_bodies: Vec<(i64, Value)>,
    /// True from a model's answer until [`Turn::book`] records its cost.
    pub unrecorded: bool,
    /// The write that is not durable yet.
    pending: TurnWrite,
    phase_began: Instant,
}

impl Turn {
    /// Takes a claim and reads from the store what its turn needs; `None` for a plain job.
    ///
    /// # Errors
    /// [`Stop::Store`], and [`Stop::Fail`] when stored rows cannot be decoded.
    pub async fn begin(deps: Arc<Deps>, claim: Claim) -> Result<Option<Box<Self>>, Stop> {
        let Some(mut side) = claim.engagement else { return Ok(None) };
        // After a handoff another agent than the engagement's answers.
        side.agent = handoff::of(&deps, &side).await?;
        side.engagement.agent.clone_from(&side.agent.name);
        let mut turn = Box::new(Self {
            job: JobFacts {
                id: claim.job,
                failures: claim.failures,
                retry: claim.retry,
                token_budget: claim
                    .envelope
                    .extra
                    .given("ext_agent_token_budget")
                    .and_then(|tokens| tokens.parse().ok()),
                args: claim.envelope.args,
                parent_results: claim.parent_results,
                meta: claim.envelope.meta,
            },
            deadline: Arc::default(),
            lease: claim.lease,
            object: resol::reads_engagement(&deps.toolbox, &side.agent)
                .then(|| EngagementObject::begin(&side.engagement, &side.agent)),
            short_circuit: side.agent.short_circuit.map(ShortCircuit::new),
            engagement: side.engagement,
            agent: side.agent,
            position: side.position,
            budget: side.budget,
            budgets: side.budgets,
            paid_before: 0,
            conversation: Conversation::default(),
            recalled_calls: Vec::new(),
            again: Vec::new(),
            reviews: Vec::new(),
            buffer: None,
            depth: side.depth,
            delegations: Vec::new(),
            fork: None,
            slot: TurnSlot::default(),
            draining: CancellationToken::new(),
            remote_calls: RemoteNotes::default(),
            delegates: None,
            reviewers: Reviewers::new(),
            flow: None,
            trace: Trace::none(),
            began_in: of_init(&side.checkpoints, "span"),
            interaction_id: of_init(&side.checkpoints, "interaction_id").unwrap_or_default(),
            resolved: None,
            bindings: None,
            inferred: None,
            persisted: None,
            done: side.checkpoints.len(),
            recalled_bodies: side.checkpoints.into_iter().map(|done| (done.version, done.body)).collect(),
            unrecorded: false,
            pending: TurnWrite::default(),
            phase_began: Instant::now(),
            deps,
        });
        turn.recall(side.past).await?;
        Ok(Some(turn))
    }

    /// Reads messages, journal, reviews and delegations of an interrupted or continued engagement.
    async fn recall(&mut self, past: Past) -> Result<(), Stop> {
        let window = self.agent.memory.window_size.saturating_add(RECALLED);
        // These two count the calls of all turns, not only of the current one.
        let whole = self.object.is_some() || self.short_circuit.is_some();
        let mut recall = match past {
            Past::Nothing => return Ok(()),
            Past::Messages(messages) if messages.len() <= window as usize => {
                Recall { messages, ..Recall::default() }
            }
            _ => self.deps.ledger.reads().recall(&self.job.id, self.position.turn, window, whole).await?,
        };
        // After a handoff, the new agent may be one without `retain_memory`. It must not see the messages of earlier
        // engagements that the first agent recalled (OAS-50).
        let retains = self.agent.retain_memory;
        recall.messages.retain(|stored| retains || stored.message.recalled_from.is_none());
        self.conversation = Conversation::recalled(&recall, &self.agent.memory, self.position.begins);
        if let Some(object) = &mut self.object {
            // The user's answer to a question of this turn is left out: expressions may read it only after EXEC has checked
            // it and passed it to the model.
            let (turn, conversation) = (self.position.turn, &self.conversation);
            let is_new_answer = |call: &ToolCall| {
                call.turn == turn
                    && question::is_one(&call.name)
                    && !call.withheld
                    && !conversation.has_outcome(&call.call_id)
            };
            let calls: Vec<ToolCall> =
                recall.tool_calls.iter().filter(|call| !is_new_answer(call)).cloned().collect();
            object.replay(&calls);
        }
        if let Some(watch) = &mut self.short_circuit {
            // Reads and changes of the agent's own state count as no repetition, and neither do notes in the journal.
            let is_call = |call: &&ToolCall| !call.is_note() && !state_call::is_one(&self.agent, &call.name);
            for call in recall.tool_calls.iter().filter(is_call) {
                watch.attempt(&call.name);
            }
        }
        self.reviews = recall.reviews;
        self.delegations = recall.delegations;
        self.fork = recall
            .fork
            .map(|(origin, recorded)| Box::new(Fork { origin, recorded, handed_over: None, resolved: None }));
        self.take_journal(recall.tool_calls);
        Ok(())
    }

    fn take_journal(&mut self, journal: Vec<ToolCall>) {
        let turn = self.position.turn;
        let (current, earlier): (Vec<_>, Vec<_>) = journal.into_iter().partition(|call| call.turn == turn);
        self.recalled_calls = current;
        self.again = earlier.into_iter().filter(|call| call.again).collect();
    }

    /// Reads the journal again, after [`Signal::CallsAgain`](super::signals::Signal::CallsAgain).
    ///
    /// # Errors
    /// [`Stop::Store`].
    pub async fn look_again(&mut self) -> Result<(), Stop> {
        let recall = self.deps.ledger.reads().recall(&self.job.id, self.position.turn, 0, false).await?;
        self.take_journal(recall.tool_calls);
        Ok(())
    }

    /// Builds the Engagement object again from the journal, after calls of earlier turns were repeated.
    ///
    /// # Errors
    /// [`Stop::Store`].
    pub async fn replay_object(&mut self) -> Result<(), Stop> {
        if self.object.is_none() {
            return Ok(());
        }
        let recall = self.deps.ledger.reads().recall(&self.job.id, self.position.turn, 0, true).await?;
        let mut object = EngagementObject::begin(&self.engagement, &self.agent);
        object.replay(&recall.tool_calls);
        self.object = Some(object);
        Ok(())
    }

    /// Returns the phase that runs next; `None` when the turn is complete.
    #[must_use]
    pub fn next_phase(&self) -> Option<Phase> {
        Phase::resume_after(self.done)
    }

    /// Marks the beginning of a phase.
    pub fn enter_phase(&mut self) {
        self.phase_began = Instant::now();
    }

    /// Returns the milliseconds since the phase began.
    #[must_use]
    pub fn phase_ms(&self) -> i64 {
        i64::try_from(self.phase_began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Returns the result of RESOL of the current turn: from memory, or from its checkpoint.
    ///
    /// # Errors
    /// [`Stop::Fail`] when there is no checkpoint, or a newer version of Turnstone wrote it: the attempt fails, and a newer
    /// worker may retry it.
    pub fn resolved(&mut self) -> Result<Arc<ResolBody>, Stop> {
        if self.resolved.is_none() {
            self.resolved = Some(Arc::new(self.recalled(Phase::Resol, resol::VERSIONS)?));
        }
        self.resolved.clone().ok_or_else(|| self.unreadable(Phase::Resol, "it is missing"))
    }

    /// Returns the result of INFER of the current turn: from memory, or from its checkpoint.
    ///
    /// # Errors
    /// As [`Turn::resolved`].
    pub fn inferred(&mut self) -> Result<Arc<InferBody>, Stop> {
        if self.inferred.is_none() {
            self.inferred = Some(Arc::new(self.recalled(Phase::Infer, infer::VERSIONS)?));
        }
        self.inferred.clone().ok_or_else(|| self.unreadable(Phase::Infer, "it is missing"))
    }

    /// Returns the result of PERSIST of the current turn: from memory, or from its checkpoint.
    ///
    /// # Errors
    /// As [`Turn::resolved`].
    pub fn persisted(&mut self) -> Result<Arc<PersistBody>, Stop> {
        if self.persisted.is_none() {
            self.persisted = Some(Arc::new(self.recalled(Phase::Persist, persist::VERSIONS)?));
        }
        self.persisted.clone().ok_or_else(|| self.unreadable(Phase::Persist, "it is missing"))
    }

    fn recalled<T: DeserializeOwned>(&self, phase: Phase, versions: &[i64]) -> Result<T, Stop> {
        let (version, body) =
            self.recalled_bodies.get(phase.index()).ok_or_else(|| self.unreadable(phase, "it is missing"))?;
        if !versions.contains(version) {
            return Err(self.unreadable(phase, &format!("its version is {version}")));
        }
        T::deserialize(body).map_err(|e| self.unreadable(phase, &e.to_string()))
    }

    fn unreadable(&self, phase: Phase, why: &str) -> Stop {
        let message = format!(
            "the checkpoint of phase {phase} of turn {} cannot be read by this worker ({why}); \
             upgrade the workers and retry the job",
            self.position.turn
        );
        Stop::Fail(JobError::new(FailureKind::Internal, message))
    }

    /// Completes a phase: adds its checkpoint and its event to the pending write, which becomes durable with the next
    /// barrier. `version` is the version of the body's form; a later worker uses it to read the checkpoint. The events of
    /// INIT and EMIT also have the ids of the turn and of the worker's instance, as OSSA demands.
    ///
    /// # Errors
    /// [`Stop::Fail`] when the body cannot be written as JSON.
    pub fn complete_phase<B: Serialize>(&mut self, phase: Phase, version: i64, body: &B) -> Result<(), Stop> {
        let more = match phase {
            Phase::Init | Phase::Emit => RawJson::written(&self.named()),
            _ => Ok(RawJson::empty_object()),
        };
        let body = RawJson::written(body);
        self.phase_done(phase, version, body, (0, 0), more)
    }

    /// Completes INFER. `tokens` are those of prompt and answer; `facts` are the further fields of its event.
    ///
    /// # Errors
    /// As [`Turn::complete_phase`].
    pub fn complete_infer<B: Serialize, F: Serialize>(
        &mut self,
        version: i64,
        body: &B,
        tokens: (i64, i64),
        facts: &F,
    ) -> Result<(), Stop> {
        let (body, more) = (RawJson::written(body), self.shown(facts));
        self.phase_done(Phase::Infer, version, body, tokens, more)
    }

    fn phase_done(
        &mut self,
        phase: Phase,
        version: i64,
        body: serde_json::Result<RawJson>,
        (tokens_in, tokens_out): (i64, i64),
        more: serde_json::Result<RawJson>,
    ) -> Result<(), Stop> {
        let failed = |e| {
            JobError::new(
                FailureKind::Internal,
                format!("the result of phase {phase} cannot be written as JSON: {e}"),
            )
        };
        let (body, more) = (body.map_err(failed)?, more.map_err(failed)?);
        let (at, duration_ms, turn) = (self.deps.clock.now(), self.phase_ms(), self.position.turn);
        let spent = Spent::default();
        self.pending.checkpoints.push(NewCheckpoint {
            turn,
            phase,
            version,
            body,
            duration_ms,
            tokens_in,
            tokens_out,
            at,
            spent,
        });
        let data = EventData::Phase(PhaseCompleted { phase, duration_ms, more });
        self.pending.events.push(NewEvent { name: EventName::PhaseCompleted, turn, data, at });
        self.done += 1;
        Ok(())
    }

    /// Undoes the completion of the last phase after the store refused its write. `pending` is the pending write as it was
    /// before that phase ended.
    pub fn undo_phase(&mut self, pending: TurnWrite) {
        self.pending = pending;
        self.done -= 1;
    }

    /// Records the costs of the phase that was completed last, together with [`Turn::paid_before`].
    pub fn spent(&mut self, spent: Spent) {
        let paid = std::mem::take(&mut self.paid_before);
        if let Some(done) = self.pending.checkpoints.last_mut() {
            done.spent = Spent { cost: spent.cost.saturating_add(paid), ..spent };
        }
    }

    /// Adds a message to the current conversation of the engagement; it becomes durable with the next barrier.
    pub fn say(&mut self, message: Message) {
        let thread = self.conversation.thread().map(str::to_owned);
        self.say_in(thread, message);
    }

    /// Adds a message to the conversation with this name; `None` is the one with the user. The agents of a team have
    /// conversations of their own.
    pub fn say_in(&mut self, thread: Option<String>, message: Message) {
        let message = Arc::new(Message { thread, ..message });
        self.pending.messages.push((self.position.turn, Arc::clone(&message)));
        self.conversation.push(self.position.turn, message, &self.agent.memory);
    }

    /// Adds a message of an earlier engagement, before the first turn of this one.
    pub fn say_before(&mut self, message: Message) {
        let message = Arc::new(message);
        self.pending.messages.push((BEFORE, Arc::clone(&message)));
        self.conversation.push(BEFORE, message, &self.agent.memory);
    }

    /// Returns the write that is not durable yet, so that a phase can add to it.
    pub fn pending(&mut self) -> &mut TurnWrite {
        &mut self.pending
    }

    /// Records the cost of a model's answer. It becomes durable with the answer, at the next barrier.
    pub fn book(&mut self, tokens: BudgetMove, money: Option<Box<ChargeMove>>) {
        self.unrecorded = false;
        (self.pending.budget, self.pending.charge) = (Some(tokens), money);
    }

    /// Returns the change of the budget that is not durable yet, if there is one.
    pub fn booking(&self) -> Option<&BudgetMove> {
        self.pending.budget.as_ref()
    }

    /// Marks the turn as failed in the event of EMIT, if that event is not durable yet. Without the mark a subscriber would
    /// take a failed turn for a complete one.
    pub fn fail_turn(&mut self) {
        for event in self.pending.events.iter_mut().rev() {
            if let EventData::Phase(completed) = &mut event.data
                && completed.phase == Phase::Emit
            {
                completed.more = completed.more.joined(&RawJson::of(&json!({"failed": true})));
                return;
            }
        }
    }

    /// Takes the write that is not durable yet, for a barrier or the settlement, and leaves an empty one.
    pub fn take_pending(&mut self) -> TurnWrite {
        std::mem::take(&mut self.pending)
    }

    /// Begins the next turn under the same lease: forgets the phases, calls and reviews of the turn before.
    pub fn advance(&mut self, position: Position) {
        self.pending.position = Some(position.clone());
        self.position = position;
        self.done = 0;
        self.recalled_bodies.clear();
        self.resolved = None;
        self.bindings = None;
        self.inferred = None;
        self.persisted = None;
        self.buffer = None;
        self.recalled_calls.clear();
        self.remote_calls = RemoteNotes::default();
        self.reviews.clear();
        self.delegations.clear();
    }

    /// Returns true if INIT of the current turn is done.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.done > 0
    }

    /// Returns the delegate of this name, if there is one.
    #[must_use]
    pub fn delegate(&self, name: &str) -> Option<&KnownDelegate> {
        self.delegates.as_ref()?.get(name)
    }

    /// Returns true if the reviewer of this name is an agent; a group of the configuration takes precedence.
    #[must_use]
    pub fn is_reviewed_by_agent(&self, name: &str) -> bool {
        self.reviewers.contains_key(name) && !self.deps.reviews.groups.contains_key(name)
    }
}

/// Returns a text from the body of INIT's checkpoint, which is the first of a turn.
fn of_init(checkpoints: &[Checkpoint], member: &str) -> Option<String> {
    checkpoints.first()?.body.get(member)?.as_str().map(str::to_owned)
}
