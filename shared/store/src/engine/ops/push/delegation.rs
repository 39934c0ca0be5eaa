//! Jobs with a parent (`ext_agent_parent_id`): they join its tree, one deeper than it or as deep as the
//! client says, whichever is deeper. The smallest maximum in the chain bounds the depth. They count among the jobs of
//! the tree.

use super::super::delegations::{Trees, notify_parent};
use super::DelegationPlace;
use crate::engine::rows::{self, JobRow};
use crate::engine::session::{Row, Session};
use crate::engine::statement::{read, read_by};
use crate::engine::unit::Unit;
use crate::{Pushed, StoreError, sql};
use std::collections::{BTreeSet, HashMap};
use turnstone_domain::agent::delegation::DelegationMode;
use turnstone_domain::agent::{FanOut, MAX_DELEGATION_DEPTH};
use turnstone_domain::{AgentDefinition, JobId, NewJob};

/// The places of new jobs in their trees.
#[derive(Default)]
pub(super) struct Places {
    by_job: HashMap<JobId, DelegationPlace>,
    refused: HashMap<JobId, StoreError>,
    parents: Unit,
}

impl Places {
    /// Looks for the jobs that these name as their parents. A parent that its tenant does not have refuses
    /// the push.
    pub(super) async fn find(session: &mut Session, pushes: &[&[NewJob]]) -> Result<Self, StoreError> {
        let mut places = Self::default();
        let asking = |job: &&NewJob| job.engagement.is_some() && job.terms.works_for.is_some();
        let jobs: Vec<&NewJob> = pushes.iter().flat_map(|jobs| jobs.iter()).filter(asking).collect();
        let ids: BTreeSet<JobId> = jobs.iter().flat_map(|job| named(job)).collect();
        let keys = ids.into_iter().collect();
        let found = read_by(session, "read jobs", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
        places.parents.take_in(session, found).await?;
        let named = jobs.iter().filter_map(|job| places.parents.seq_of(job.terms.works_for.as_ref()?));
        let mut trees = Trees::lock(session, &places.parents, named).await?;
        let mut limits = HashMap::new();
        for job in jobs {
            places.place(session, job, &mut limits, &mut trees).await?;
        }
        Ok(places)
    }

    async fn place(
        &mut self,
        session: &mut Session,
        job: &NewJob,
        limits: &mut HashMap<String, u32>,
        trees: &mut Trees,
    ) -> Result<(), StoreError> {
        let found = named(job).into_iter().filter_map(|id| self.parents.seq_of(&id));
        let mut found = found.filter_map(|seq| self.parents.job(seq).zip(self.parents.engagement_of(seq)));
        let parent = found.find(|(parent, _)| parent.tenant == job.terms.tenant);
        let Some(new) = &job.engagement else { return Ok(()) };
        let Some((parent, row)) = parent else {
            let named = job.terms.works_for.clone().unwrap_or_else(|| job.id.clone());
            let refused = StoreError::UnknownParent { job: job.id.clone(), parent: named };
            self.refused.insert(job.id.clone(), refused);
            return Ok(());
        };
        let max_depth = match limits.get(&row.digest) {
            Some(most) => *most,
            None => {
                let most = limit_of(session, &row.digest).await?;
                limits.insert(row.digest.clone(), most);
                most
            }
        };
        let max_depth = max_depth.min(new.agent.limits.max_delegation_depth).min(MAX_DELEGATION_DEPTH);
        // A client may know of agents above it that this server does not.
        let depth = new.depth.max(row.depth + 1);
        if depth > i64::from(max_depth) {
            let refused = StoreError::TooDeep { job: job.id.clone(), depth, most: i64::from(max_depth) };
            self.refused.insert(job.id.clone(), refused);
            return Ok(());
        }
        let most = job.terms.max_jobs_per_tree.unwrap_or(FanOut::DEFAULT.max_jobs_per_tree);
        if let Err(jobs) = trees.take(row.budget_seq, 1, most) {
            let refused = StoreError::TreeFull { job: job.id.clone(), jobs, most: i64::from(most) };
            self.refused.insert(job.id.clone(), refused);
            return Ok(());
        }
        let delegation = DelegationPlace {
            parent_seq: parent.seq,
            parent: parent.id.clone(),
            parent_engagement_seq: row.seq,
            depth,
            max_depth,
            budget_seq: row.budget_seq,
            jobs: 1,
            limited_by: row.limited_by.clone(),
            call_id: None,
            turn: parent.position.as_ref().map_or(0, |position| position.turn),
            mode: DelegationMode::Parallel,
            timeout_ms: None,
        };
        self.by_job.insert(job.id.clone(), delegation);
        Ok(())
    }

    /// Why a push is refused, if one of its jobs has no parent or is too deep, or its tree is full.
    pub(super) fn refusal(&self, jobs: &[NewJob]) -> Option<StoreError> {
        jobs.iter().find_map(|job| self.refused.get(&job.id).cloned())
    }

    /// The place of a job.
    pub(super) fn of(&self, job: &NewJob) -> Option<&DelegationPlace> {
        self.by_job.get(&job.id)
    }

    /// Records new delegates in the streams of parents that have not ended.
    pub(super) async fn tell(
        mut self,
        session: &mut Session,
        unit: &mut Unit,
        pushed: &[(&NewJob, &Pushed)],
    ) -> Result<(), StoreError> {
        for (job, pushed) in pushed {
            let Some(delegation) = self.by_job.get(&job.id).filter(|_| !pushed.deduplicated) else {
                continue;
            };
            if self.parents.job(delegation.parent_seq).is_some_and(|parent| !parent.state.is_terminal()) {
                notify_parent(&mut self.parents, job, delegation)?;
                // Its row was read before this child was counted: the holder of its lease here reads it again.
                self.parents.distrust(delegation.parent_seq);
            }
        }
        self.parents.flush(session).await?;
        unit.absorb(self.parents);
        Ok(())
    }
}

/// Returns the ids of the parent that a job names: as it is, and as a client of its tenant may have chosen it.
fn named(job: &NewJob) -> Vec<JobId> {
    let tenant = job.terms.tenant.as_deref();
    let ids = job.terms.works_for.iter().flat_map(|id| [JobId::chosen(id.as_str(), tenant), id.clone()]);
    ids.collect()
}

/// How deep an agent may delegate.
async fn limit_of(session: &mut Session, digest: &str) -> Result<u32, StoreError> {
    let (action, text) = ("read an agent definition", &sql::SELECT_DEFINITION_BY_DIGEST);
    let decode = |row: &Row| rows::json::<AgentDefinition>(row, "definition");
    let found = read(session, action, text, &[digest.into()], decode).await?;
    Ok(found.first().map_or(MAX_DELEGATION_DEPTH, |agent| agent.limits.max_delegation_depth))
}
