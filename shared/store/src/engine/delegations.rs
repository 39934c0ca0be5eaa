//! Agents that work for agents: reads of the delegation tree.

use super::Engine;
use super::columns::Columns;
use super::rows::{get, json};
use super::session::{Args, Reader};
use super::views::{all, one};
use crate::views::serves;
use crate::{Delegated, StoreError, sql};
use async_recursion::async_recursion as boxed;
use serde::Serialize;
use std::sync::Arc;
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::{AgentDefinition, CallId, EngagementId, JobId, JobState, RawJson};

/// The place of a job in the tree of delegations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DelegationLinks {
    /// The number of jobs above it.
    pub depth: i64,
    /// The job and the engagement that it works for.
    pub parent: Option<(JobId, EngagementId)>,
    /// Its delegates and theirs, parents before their children.
    pub below: Vec<DelegationLink>,
}

/// A delegate.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DelegationLink {
    /// Its job.
    pub job_id: JobId,
    /// Its engagement.
    pub engagement_id: EngagementId,
    /// Its agent.
    pub agent: String,
    /// The job that it works for.
    pub parent_job_id: JobId,
    /// The call that it answers; `None` for a job that was pushed from outside.
    pub call_id: Option<CallId>,
    /// The mode of the delegation.
    pub mode: DelegationMode,
    /// Its outcome for the parent.
    pub status: DelegationState,
    /// The state of its job.
    pub state: JobState,
    /// The number of jobs above it.
    pub depth: i64,
    /// Its complete turns.
    pub turns: i64,
    /// The tokens that it has spent itself.
    pub tokens_used: i64,
}

/// See [`crate::LedgerReads::agents`].
pub(super) async fn agents(
    readers: &Reader,
    names: &[String],
    tenant: Option<&str>,
) -> Result<Vec<AgentDefinition>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let text = &sql::SELECT_AGENTS_BY_NAME;
    let rows = readers.read("read agents", text, Args::Rows(Columns::of(names.to_vec(), text)?, &[])).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let tenants = get::<Option<Vec<String>>>(row, "tenants")?;
        if !serves(tenants.as_deref(), tenant) {
            continue;
        }
        match json(row, "definition").map_err(StoreError::from) {
            Ok(agent) => found.push(agent),
            Err(error) => tracing::error!(%error, "an agent cannot be read, so it cannot be called"),
        }
    }
    Ok(found)
}

/// Returns the delegations of a turn.
pub(super) async fn of_turn(readers: &Reader, job: &JobId, turn: i64) -> Result<Vec<Delegated>, StoreError> {
    let values = [job.as_str().into(), turn.into()];
    all(readers, "recall delegations", &sql::SELECT_DELEGATIONS_OF_TURN, &values, |row| {
        let result = get::<Option<String>>(row, "result")?
            .map(|text| RawJson::from_text(text).unwrap_or_else(|_| RawJson::null()));
        let error = match get::<Option<&str>>(row, "error")? {
            Some(_) => Some(json(row, "error")?),
            None => None,
        };
        Ok(Delegated {
            call_id: CallId(get(row, "call_id")?),
            agent: get(row, "agent")?,
            mode: get::<DelegationMode>(row, "mode")?,
            state: get::<DelegationState>(row, "state")?,
            job: JobId(get(row, "id")?),
            result,
            error,
            started_at: get(row, "started_at")?,
            ended_at: get(row, "ended_at")?,
        })
    })
    .await
}

/// Agents that work for agents.
#[derive(Clone)]
pub struct Delegations(pub(super) Arc<Engine>);

impl Delegations {
    /// Returns the links of a job, with at most `most` of those below it.
    #[boxed]
    pub async fn links(&self, job: &JobId, most: u32) -> Result<DelegationLinks, StoreError> {
        let (action, values) = ("read a family", [job.as_str().into()]);
        let above = one(&self.0.readers, action, &sql::SELECT_FAMILY_ABOVE, &values, |row| {
            let parent = get::<Option<String>>(row, "parent_id")?
                .zip(get::<Option<String>>(row, "parent_engagement_id")?);
            Ok((get::<i64>(row, "depth")?, parent))
        });
        let (depth, parent) = above.await?.unwrap_or_default();
        let values = [job.as_str().into(), most.into()];
        let below = all(&self.0.readers, action, &sql::SELECT_FAMILY_BELOW, &values, |row| {
            Ok(DelegationLink {
                job_id: JobId(get(row, "id")?),
                engagement_id: get::<String>(row, "engagement_id")?.into(),
                agent: get(row, "agent_name")?,
                parent_job_id: JobId(get(row, "parent_id")?),
                call_id: get::<Option<String>>(row, "call_id")?.map(CallId),
                mode: get::<DelegationMode>(row, "mode")?,
                status: get::<DelegationState>(row, "delegation")?,
                state: get::<JobState>(row, "state")?,
                depth: get(row, "depth")?,
                turns: get(row, "turns")?,
                tokens_used: get(row, "tokens_used")?,
            })
        });
        let parent = parent.map(|(job, engagement)| (JobId(job), engagement.into()));
        Ok(DelegationLinks { depth, parent, below: below.await? })
    }
}
