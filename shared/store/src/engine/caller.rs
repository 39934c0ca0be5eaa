//! The reads of workers, and the calls of the scheduler.

use super::ops::upkeep::{self, Moment};
use super::ops::{leader, leases};
use super::rows;
use super::session::Args;
use super::statement::decode_all;
use super::views::by_keys;
use super::{Engine, artifacts, delegations, forks, memories, recall};
use crate::{Duty, LedgerReads, Recall, Standing, StoreError, Term, Upkeep, sql};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::PoisonError;
use turnstone_domain::artifact::Artifact;
use turnstone_domain::memory::Exchange;
use turnstone_domain::session_state::{Scope, StateSnapshot};
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{
    AgentDefinition, ArtifactId, CallId, ClockSteps, EngagementId, JobId, Lease, Phase, Timestamp,
};

#[async_trait]
impl LedgerReads for Engine {
    async fn standing(&self, held: &[Lease]) -> Result<Standing, StoreError> {
        let (action, text) = ("check leases", &sql::SELECT_HELD_LEASES);
        let keys = (leases::keys(held), [].as_slice());
        let found = by_keys(&self.readers, action, text, keys, |row| {
            let (held, again) = (rows::get::<bool>(row, "held")?, rows::get::<i64>(row, "calls_again")?);
            Ok((rows::get::<String>(row, "lease_token")?, held, again))
        })
        .await?;
        let mut standing = Standing::default();
        let mut tokens = Vec::with_capacity(found.len());
        for (token, paused, again) in found {
            if paused {
                standing.paused.push(token.clone());
            }
            if again > 0 {
                standing.calls_again.push((token.clone(), again));
            }
            tokens.push(token);
        }
        standing.lost = leases::lost(held, tokens);
        Ok(standing)
    }

    async fn most_urgent(&self, queues: &[String]) -> Result<Option<i64>, StoreError> {
        let rows =
            self.readers.read("look for urgent jobs", &sql::SELECT_URGENT_QUEUES, Args::Values(&[])).await?;
        let found = decode_all(&rows, |row| {
            Ok((rows::get::<String>(row, "name")?, rows::get::<Option<i64>>(row, "priority")?))
        })?;
        let serves = |name: &String| queues.iter().any(|queue| queue == "*" || queue == name);
        Ok(found.iter().filter(|(name, _)| serves(name)).filter_map(|(_, priority)| *priority).max())
    }

    async fn state(&self, scope: &Scope, now: Timestamp) -> Result<StateSnapshot, StoreError> {
        recall::state(&self.readers, scope, now).await
    }

    async fn artifacts_of(&self, engagement: &EngagementId) -> Result<Vec<Artifact>, StoreError> {
        artifacts::of_engagement(&self.readers, engagement).await
    }

    async fn artifact_bytes(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        artifacts::content(&self.readers, id).await
    }

    async fn agents(
        &self,
        names: &[String],
        tenant: Option<&str>,
    ) -> Result<Vec<AgentDefinition>, StoreError> {
        delegations::agents(&self.readers, names, tenant).await
    }

    async fn recorded_call(&self, job: &JobId, call: &CallId) -> Result<Option<ToolCall>, StoreError> {
        forks::recorded_call(&self.readers, job, call).await
    }

    async fn memories(&self, job: &JobId, rules: &str) -> Result<Vec<Exchange>, StoreError> {
        memories::of_job(&self.readers, job, rules).await
    }

    async fn persisted(&self, job: &JobId, from: i64, until: i64) -> Result<Vec<Value>, StoreError> {
        recall::bodies_of(&self.readers, job, Phase::Persist, (from, until)).await
    }

    async fn recall(
        &self,
        job: &JobId,
        turn: i64,
        window: u32,
        whole_journal: bool,
    ) -> Result<Recall, StoreError> {
        recall::recall(&self.readers, job, turn, window, whole_journal).await
    }
}

#[async_trait]
impl Upkeep for Engine {
    fn follow(&self, steps: ClockSteps) {
        *self.steps.lock().unwrap_or_else(PoisonError::into_inner) = steps;
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let rows =
            self.readers.read("look for what is due", &sql::SELECT_NEXT_DUE, Args::Values(&[])).await?;
        let due = decode_all(&rows, |row| rows::get::<Option<i64>>(row, "due"))?;
        Ok(due.into_iter().flatten().next().map(Timestamp))
    }

    async fn lead(&self, holder: &str, lease_ms: i64, now: Timestamp) -> Result<Option<Term>, StoreError> {
        // A standby asks often, and only reads while the other's term lasts.
        let rows = self.readers.read("look who leads", &sql::SELECT_LEADER, Args::Values(&[])).await?;
        let leads = decode_all(&rows, |row| {
            Ok((rows::get::<String>(row, "holder")?, rows::get::<Timestamp>(row, "expires_at")?))
        })?;
        // A term that ends later than a new one was written before the clock stepped back, and may never be renewed.
        let latest = now.plus_ms(lease_ms).plus_ms(upkeep::ADOPTED_MS);
        if leads.into_iter().any(|(leader, ends)| leader != holder && ends > now && ends <= latest) {
            return Ok(None);
        }
        self.write_urgently((holder.to_owned(), lease_ms, now), |tx, (holder, lease_ms, now)| {
            Box::pin(leader::lead(&mut tx.session, holder, *lease_ms, *now, &*tx.ids))
        })
        .await
    }

    async fn resign(&self, term: &Term) -> Result<(), StoreError> {
        self.write(term.clone(), |tx, term| Box::pin(leader::resign(&mut tx.session, term))).await
    }

    async fn perform(
        &self,
        duty: Duty,
        term: &Term,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        if duty == Duty::NumberCommits {
            return self.number_commits().await.map(|()| 0);
        }
        if matches!(duty, Duty::Prune { .. }) {
            self.warn_of_open_transaction().await;
        }
        let now = Moment { at: now, steps: *self.steps.lock().unwrap_or_else(PoisonError::into_inner) };
        self.write((duty, term.clone(), now, limit), |tx, (duty, term, now, limit)| {
            Box::pin(upkeep::perform(&mut tx.session, &mut tx.unit, *duty, term, *now, *limit))
        })
        .await?
    }

    async fn release_all(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.write(now, |tx, now| Box::pin(upkeep::release_all(&mut tx.session, &mut tx.unit, *now))).await
    }
}
