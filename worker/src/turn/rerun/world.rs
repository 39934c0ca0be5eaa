//! The world of a record: its time, its ids, its model and its ledger.

use crate::model::{AskedCall, FinishReason, Model, ModelAnswer, ModelError, ModelRequest, Usage};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use turnstone_domain::artifact::Artifact;
use turnstone_domain::budget::{Budget, BudgetMove};
use turnstone_domain::checkpoint::{InferBody, InitBody, PersistBody, Transaction};
use turnstone_domain::fork::{ForkPoint, state_at};
use turnstone_domain::memory::Exchange;
use turnstone_domain::message::{Message, Role};
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::session_state::{Scope, StateCommit, StateEntry, StateSnapshot};
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{
    AgentDefinition, ArtifactId, CallId, Checkpoint, Clock, EngagementId, IdSource, Ids, JobId, Lease, Phase,
    RawJson, Settlement, Timestamp, TurnWrite,
};
use turnstone_store::{
    Claim, ClaimRequest, Committed, Directive, Ledger, LedgerError, LedgerReads, Recall, Standing,
    StoreError, WorkerBeat,
};

/// The prefix of a summary's text.
const SUMMARY: &str = "Summary of the conversation so far: ";

/// The world of a record.
pub(super) struct World {
    inner: Mutex<Inner>,
    delegates: Vec<AgentDefinition>,
    calls: Vec<ToolCall>,
    memories: Vec<Exchange>,
}

#[derive(Default)]
struct Inner {
    now: Timestamp,
    ids: VecDeque<String>,
    answers: VecDeque<ModelAnswer>,
    /// True if the next commit of state is refused, as it was in the record.
    conflict: bool,
    state: StateSnapshot,
    budget: Budget,
    written: Vec<Checkpoint>,
    said: Vec<(i64, Arc<Message>)>,
}

impl World {
    /// Returns the world before the first turn.
    pub(super) fn of(record: &EngagementRecord) -> Self {
        let persisted: Vec<Checkpoint> =
            record.checkpoints.iter().filter(|done| done.phase == Phase::Persist).cloned().collect();
        let now = StateSnapshot { version: 0, entries: record.state.clone() };
        let began = state_at(ForkPoint { turn: 1, phase: Phase::Init }, &now, &persisted);
        let at = record.job.created_at;
        let entry = |(key, value)| StateEntry { key, value, version: 1, updated_at: at, expires_at: None };
        let entries: Vec<StateEntry> = began.into_iter().map(entry).collect();
        let state = StateSnapshot { version: i64::from(!entries.is_empty()), entries };
        let inner = Inner { now: at, state, ..Inner::default() };
        let (delegates, calls) = (record.delegates.clone(), record.calls.clone());
        let memories = Exchange::of_recalled(record.messages.iter().map(|stored| &stored.message));
        Self { inner: Mutex::new(inner), delegates, calls, memories }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares the world's answers for a recorded phase that runs next.
    pub(super) fn enter(&self, record: &EngagementRecord, recorded: &Checkpoint) {
        let mut inner = self.inner();
        inner.now = recorded.at;
        inner.ids.clear();
        match recorded.phase {
            Phase::Init => {
                if let Some(init) = recorded.read::<InitBody>() {
                    inner.now = init.started_at;
                    inner.ids.push_back(init.interaction_id);
                }
            }
            Phase::Persist => {
                let persisted = recorded.read::<PersistBody>();
                inner.conflict =
                    persisted.as_ref().is_some_and(|persisted| persisted.status == Transaction::RolledBack);
                inner.ids.extend(persisted.map(|persisted| persisted.transaction_id));
            }
            Phase::Infer => {
                inner.answers.clear();
                let Some(infer) = recorded.read::<InferBody>() else { return };
                for stored in record.messages.iter().filter(|stored| stored.turn == recorded.turn) {
                    inner.answers.extend(answer(&stored.message, &infer));
                    if stored.message.role == Role::Assistant {
                        inner.ids.extend(stored.message.tool_calls.iter().map(|call| call.call_id.0.clone()));
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the checkpoint of a phase.
    pub(super) fn left(&self, turn: i64, phase: Phase) -> Option<Checkpoint> {
        let inner = self.inner();
        inner.written.iter().find(|done| done.turn == turn && done.phase == phase).cloned()
    }

    /// Returns the messages of a turn.
    pub(super) fn said(&self, turn: i64) -> Vec<Message> {
        let inner = self.inner();
        inner.said.iter().filter(|(of, _)| *of == turn).map(|(_, message)| (**message).clone()).collect()
    }

    /// Records a write of a turn.
    pub(super) fn take(&self, write: TurnWrite) -> Budget {
        let mut inner = self.inner();
        let read = |body: RawJson| body.parse::<Value>().unwrap_or_default();
        inner.written.extend(write.checkpoints.into_iter().map(|done| done.with(read)));
        inner.said.extend(write.messages);
        match write.budget {
            Some(BudgetMove::Reserve { tokens }) => inner.budget.reserved += tokens,
            Some(BudgetMove::Settle { reserved, used }) => {
                inner.budget.reserved -= reserved;
                inner.budget.settled += used;
            }
            None => {}
        }
        if let Some(commit) = write.state {
            commit_to(&mut inner.state, commit);
        }
        inner.budget
    }
}

fn commit_to(state: &mut StateSnapshot, commit: StateCommit) {
    state.version += 1;
    for write in commit.writes {
        state.entries.retain(|entry| entry.key != write.key);
        if let Some(value) = write.value {
            let (version, updated_at) = (state.version, Timestamp(0));
            let (key, expires_at) = (write.key, write.expires_at);
            state.entries.push(StateEntry { key, value, version, updated_at, expires_at });
        }
    }
    state.entries.sort_by(|a, b| a.key.cmp(&b.key));
}

/// Returns the model's answer from the message that holds it: the answer of a turn, or a summary that was
/// made in it.
fn answer(message: &Message, infer: &InferBody) -> Option<ModelAnswer> {
    let model = infer.model.clone();
    if let Some(summary) = message.summary {
        let (input, output) = (summary.tokens_in, summary.tokens_out);
        return Some(ModelAnswer {
            content: Some(message.content.strip_prefix(SUMMARY).unwrap_or(&message.content).to_owned()),
            tool_calls: Vec::new(),
            finish_reason: FinishReason::Stop,
            usage: Some(Usage { input, cached_input: 0, output, reasoning: 0 }),
            model,
            response_id: None,
            attached: None,
            parts: 1,
        });
    }
    let requested = message
        .tool_calls
        .iter()
        .map(|call| AskedCall { name: call.name.clone(), arguments: call.arguments.clone() });
    (message.role == Role::Assistant).then(|| ModelAnswer {
        content: Some(message.content.clone()),
        tool_calls: requested.collect(),
        finish_reason: infer.finish_reason,
        usage: Some(Usage {
            input: infer.tokens_in,
            cached_input: infer.tokens_cached,
            output: infer.tokens_out,
            reasoning: infer.tokens_reasoning,
        }),
        model,
        response_id: None,
        attached: message.attached.clone(),
        parts: 1,
    })
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        self.inner().now
    }
}

impl Ids for World {
    fn next(&self) -> String {
        self.inner().ids.pop_front().unwrap_or_default()
    }

    /// Returns the id of the record: an import or a fork gave its calls other ids, and older versions drew them.
    fn derived(&self, _: &IdSource<'_>) -> String {
        self.next()
    }
}

#[async_trait]
impl Model for World {
    async fn answer(&self, _: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let next = self.inner().answers.pop_front();
        next.ok_or_else(|| {
            ModelError::Refused("the model is called more often than in the record".to_owned())
        })
    }
}

#[async_trait]
impl Ledger for World {
    async fn claim(&self, _: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        Ok(Vec::new())
    }

    async fn checkpoint(
        &self,
        _: &Lease,
        write: TurnWrite,
        _: Timestamp,
        _: i64,
    ) -> Result<Committed, LedgerError> {
        if write.state.is_some() && std::mem::take(&mut self.inner().conflict) {
            return Err(LedgerError::StateConflict);
        }
        Ok(Committed { budget: self.take(write), ..Committed::default() })
    }

    async fn settle(&self, _: &Lease, _: TurnWrite, _: Settlement, _: Timestamp) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn extend(&self, _: &[Lease], _: Timestamp, _: i64) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    async fn release(&self, _: &[Lease], _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    async fn beat(&self, _: WorkerBeat, _: i64) -> Result<Option<Directive>, StoreError> {
        Ok(None)
    }

    async fn leave(&self, _: &str, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn reads(&self) -> &dyn LedgerReads {
        self
    }
}

#[async_trait]
impl LedgerReads for World {
    async fn standing(&self, _: &[Lease]) -> Result<Standing, StoreError> {
        Ok(Standing::default())
    }

    async fn most_urgent(&self, _: &[String]) -> Result<Option<i64>, StoreError> {
        Ok(None)
    }

    async fn state(&self, _: &Scope, _: Timestamp) -> Result<StateSnapshot, StoreError> {
        Ok(self.inner().state.clone())
    }

    async fn artifacts_of(&self, _: &EngagementId) -> Result<Vec<Artifact>, StoreError> {
        Ok(Vec::new())
    }

    async fn artifact_bytes(&self, _: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    async fn agents(&self, names: &[String], _: Option<&str>) -> Result<Vec<AgentDefinition>, StoreError> {
        Ok(self.delegates.iter().filter(|agent| names.contains(&agent.name)).cloned().collect())
    }

    async fn recorded_call(&self, _: &JobId, call: &CallId) -> Result<Option<ToolCall>, StoreError> {
        Ok(self.calls.iter().find(|known| known.call_id == *call).cloned())
    }

    async fn memories(&self, _: &JobId, _: &str) -> Result<Vec<Exchange>, StoreError> {
        Ok(self.memories.clone())
    }

    async fn persisted(&self, _: &JobId, _: i64, _: i64) -> Result<Vec<Value>, StoreError> {
        Ok(Vec::new())
    }

    async fn recall(&self, _: &JobId, _: i64, _: u32, _: bool) -> Result<Recall, StoreError> {
        Ok(Recall::default())
    }
}
