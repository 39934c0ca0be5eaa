//! Jobs that carry a further input into an engagement that exists.

use super::super::admission;
use super::super::inputs::{self, Standing};
use crate::engine::rows::{Fields, Inconsistency, get};
use crate::engine::session::{Arg, Row, Session};
use crate::engine::statement::{read, read_by};
use crate::{NotContinued, StoreError, sql};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use turnstone_domain::terms::Continues;
use turnstone_domain::{JobId, JobState, NewJob};

/// An engagement as it was before this push; no other process adds an input to it before this is committed.
pub(in crate::engine) struct Open {
    pub seq: i64,
    pub turns: i64,
    pub events: i64,
    pub inputs: i64,
    pub standing: Standing,
    /// The agent of the input that works, or worked last.
    pub digest: String,
    /// How long that agent wants the conversation kept.
    pub retention_ms: Option<i64>,
    user: String,
    tenant: Option<String>,
    latest: JobId,
    in_review: bool,
}

impl Open {
    fn decode(row: &impl Fields) -> Result<(String, Option<Self>), Inconsistency> {
        let id = get(row, "id")?;
        // One whose last job is being forgotten is no more.
        let Some(latest) = get::<Option<String>>(row, "job_id")? else { return Ok((id, None)) };
        let open = Self {
            seq: get(row, "seq")?,
            turns: get(row, "turns")?,
            events: get(row, "events")?,
            inputs: get(row, "inputs")?,
            standing: Standing::default(),
            digest: get(row, "digest")?,
            retention_ms: get(row, "retention_ms")?,
            user: get(row, "user_id")?,
            tenant: get(row, "tenant")?,
            latest: JobId(latest),
            in_review: false,
        };
        Ok((id, Some(open)))
    }

    /// Why it does not take this job.
    fn refusal(&self, job: &NewJob, ends: &HashMap<JobId, JobState>) -> Option<NotContinued> {
        let user = job.engagement.as_ref().map(|engagement| engagement.user.id.as_str());
        if job.terms.tenant != self.tenant || user != Some(self.user.as_str()) {
            return Some(NotContinued::Unknown);
        }
        if job.terms.continues == Some(Continues::Always) {
            return None;
        }
        if self.standing.open.is_empty() {
            let state = ends.get(&self.latest).copied().unwrap_or(JobState::Completed);
            return Some(NotContinued::Ended(state));
        }
        self.in_review.then_some(NotContinued::InReview)
    }

    /// Returns the error when the engagement was imported, and nothing admits its agent.
    async fn not_admitted(
        &self,
        session: &mut Session,
        tenant: Option<&str>,
    ) -> Result<Option<StoreError>, StoreError> {
        let Some(agent) = admission::by_digest(session, &self.digest).await? else { return Ok(None) };
        match admission::admit(session, agent, tenant).await {
            Err(refused @ StoreError::NotRegistered { .. }) => Ok(Some(refused)),
            admitted => admitted.map(|_| None),
        }
    }
}

/// Returns true if a further input is for an agent that was imported with its engagement.
fn is_imported(job: &NewJob) -> bool {
    job.engagement.as_ref().is_some_and(|new| new.agent.imported)
}

/// The engagements that new jobs continue.
#[derive(Default)]
pub(super) struct Continued {
    by_id: BTreeMap<String, Open>,
    refused: HashMap<JobId, StoreError>,
}

impl Continued {
    /// Looks for them, and holds them.
    pub(super) async fn find(session: &mut Session, pushes: &[&[NewJob]]) -> Result<Self, StoreError> {
        let continuing = |job: &&NewJob| job.terms.continues.is_some();
        let jobs: Vec<&NewJob> = pushes.iter().flat_map(|jobs| jobs.iter()).filter(continuing).collect();
        if jobs.is_empty() {
            return Ok(Self::default());
        }
        let ids: BTreeSet<&str> =
            jobs.iter().filter_map(|job| Some(job.engagement.as_ref()?.id.as_str())).collect();
        let keys = ids.into_iter().map(str::to_owned).collect();
        let (action, text) = ("hold engagements", &sql::LOCK_CONTINUED_ENGAGEMENTS);
        let found = read_by(session, action, text, keys, Open::decode).await?;
        let mut by_id: BTreeMap<String, Open> =
            found.into_iter().filter_map(|(id, open)| Some((id, open?))).collect();
        let mut standings = inputs::standings(session, by_id.values().map(|open| open.seq).collect()).await?;
        for open in by_id.values_mut() {
            open.standing = standings.remove(&open.seq).unwrap_or_default();
            let parked = open.standing.open.first().filter(|input| input.state == JobState::Pending);
            if let Some(parked) = parked {
                let (action, values) = ("look for reviews", [parked.seq.into()]);
                let requested = read(session, action, &sql::SELECT_WAITING_REVIEWS, &values, |row| {
                    get::<i64>(row, "reviews")
                });
                open.in_review = requested.await?.into_iter().any(|reviews| reviews > 0);
            }
        }
        let mut continued = Self { by_id, refused: HashMap::new() };
        let ends = continued.ends(session).await?;
        for job in jobs {
            let Some(engagement) = job.engagement.as_ref().map(|engagement| engagement.id.clone()) else {
                continue;
            };
            let open = continued.by_id.get(engagement.as_str());
            let why = open.map_or(Some(NotContinued::Unknown), |open| open.refusal(job, &ends));
            let refused = match (why, open) {
                (Some(why), _) => Some(StoreError::NotContinued { engagement, why }),
                (None, Some(open)) if is_imported(job) => {
                    open.not_admitted(session, job.terms.tenant.as_deref()).await?
                }
                (None, _) => None,
            };
            continued.refused.extend(refused.map(|refused| (job.id.clone(), refused)));
        }
        Ok(continued)
    }

    /// How those ended of which no input is worked on.
    async fn ends(&self, session: &mut Session) -> Result<HashMap<JobId, JobState>, StoreError> {
        let mut ends = HashMap::new();
        for open in self.by_id.values().filter(|open| open.standing.open.is_empty()) {
            let values = [open.latest.as_str().into(), Arg::Text(None)];
            let state = |row: &Row| crate::engine::rows::JobRow::decode(row).map(|job| job.state);
            let found = read(session, "read a job", &sql::SELECT_JOB_BY_ID, &values, state).await?;
            ends.extend(found.into_iter().map(|state| (open.latest.clone(), state)));
        }
        Ok(ends)
    }

    /// Why a push is refused, if one of its jobs has no engagement to go to.
    pub(super) fn refusal(&self, jobs: &[NewJob]) -> Option<StoreError> {
        jobs.iter().find_map(|job| self.refused.get(&job.id).cloned())
    }

    /// The engagement that a job continues.
    pub(super) fn of(&self, job: &NewJob) -> Option<&Open> {
        job.terms.continues?;
        self.by_id.get(job.engagement.as_ref()?.id.as_str())
    }
}
