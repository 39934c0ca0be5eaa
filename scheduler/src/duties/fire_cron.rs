//! Occurrences of cron entries become jobs (OJS cron §4). Jobs are built here, because an agent's job needs a look-up
//! of the agent. The store pushes the job and advances the entry in one transaction, so no occurrence is fired twice.

use std::sync::Arc;
use turnstone_domain::agent::FanOutRules;
use turnstone_domain::cron::{CronEntry, Schedule};
use turnstone_domain::schema::Mode;
use turnstone_domain::{Ids, NewJob, Timestamp};
use turnstone_ojs::{ArgsSchemas, EnqueueRequest, Misfit, OjsError, cron, rules};
use turnstone_store::{Crons, Firing, Schemas, Store, StoreError, Term, Views};

/// The most entries of one query.
const BATCH: u32 = 100;

/// Fires cron entries.
pub(crate) struct FireCron {
    crons: Crons,
    schemas: Schemas,
    views: Views,
    ids: Arc<dyn Ids>,
    fan_out: FanOutRules,
}

impl FireCron {
    pub(crate) fn new(store: &Store, ids: Arc<dyn Ids>, fan_out: FanOutRules) -> Self {
        let (crons, schemas) = (store.crons.clone(), store.schemas.clone());
        Self { crons, schemas, views: store.views.clone(), ids, fan_out }
    }

    /// Fires every entry that is due; returns how many advanced. An entry that cannot be fired does not keep the others
    /// from it.
    ///
    /// # Errors
    /// The first failure of the store.
    pub(crate) async fn run(&self, term: &Term, now: Timestamp) -> Result<usize, StoreError> {
        let (mut moved, mut failure) = (0, None);
        for entry in self.crons.due(now, BATCH).await? {
            let name = entry.name.clone();
            match self.fire(entry, term, now).await {
                Ok(None) => {}
                Ok(Some(jobs)) => {
                    moved += 1;
                    tracing::debug!(cron = name, jobs, "a cron entry occurred");
                }
                Err(StoreError::Deposed) => return Err(StoreError::Deposed),
                Err(error) => {
                    tracing::warn!(cron = name, %error, "a cron entry could not be fired; it is tried again");
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(moved), Err)
    }

    async fn fire(&self, entry: CronEntry, term: &Term, now: Timestamp) -> Result<Option<usize>, StoreError> {
        let (mut due, mut next_run_at) = (Vec::new(), None);
        match Schedule::parse(&entry.expression, &entry.timezone) {
            Ok(schedule) => {
                let occurrences;
                (occurrences, next_run_at) = entry.due(&schedule, now);
                for scheduled_at in occurrences {
                    due.push((scheduled_at, self.job(&entry, scheduled_at, now).await?));
                }
            }
            // Another version could read it.
            Err((field, why)) => {
                due.extend(entry.next_run_at.map(|at| (at, Err(format!("{field} {why}")))));
            }
        }
        for why in due.iter().filter_map(|(_, job)| job.as_ref().err()) {
            tracing::warn!(cron = entry.name, why, "a cron entry made no job");
        }
        self.crons.fire(Firing { entry, due, next_run_at, at: now }, term).await
    }

    /// Returns the job of an occurrence, read as a body of `POST /jobs`. The inner error is the template's.
    async fn job(
        &self,
        entry: &CronEntry,
        scheduled_at: Timestamp,
        now: Timestamp,
    ) -> Result<Result<NewJob, String>, StoreError> {
        let known = entry.clone();
        // The schemas of a template take a while to be compiled.
        let reading = turnstone_blocking::run(move || {
            cron::template_of(&known)
                .and_then(|fields| EnqueueRequest::from_fields(fields, known.tenant.as_deref(), now))
        });
        let request = match reading.await {
            Ok(Ok(request)) => request,
            Ok(Err(wrong)) => return Ok(Err(wrong.message)),
            Err(_) => return Ok(Err("its template could not be read to its end".to_owned())),
        };
        let agent = match request.agent_name() {
            Some(name) => {
                let found = self.views.agent(name, request.tenant()).await?;
                found.map(|record| record.definition)
            }
            None => None,
        };
        let mut job = match request.into_new_job(agent, self.ids.as_ref()) {
            Ok(job) => job,
            Err(wrong) => return Ok(Err(wrong.message)),
        };
        if let Some(parent) = &job.terms.works_for {
            let joined = self.views.engagement_of_job(parent, job.terms.tenant.as_deref()).await?;
            job.terms.max_jobs_per_tree = joined.map(|(_, agent)| self.fan_out.of(&agent).max_jobs_per_tree);
        }
        cron::stamp(&mut job, entry, scheduled_at, now);
        Ok(match self.refusal(&job).await? {
            Some(wrong) => Err(wrong.message),
            None => Ok(job),
        })
    }

    /// Returns why a request for this job would be refused: a rule, or an enforced schema of its arguments.
    async fn refusal(&self, job: &NewJob) -> Result<Option<OjsError>, StoreError> {
        if let Err(wrong) = rules::check(job) {
            return Ok(Some(wrong));
        }
        let registered = self.schemas.schemas(Some(&job.job_type), None).await?;
        if registered.is_empty() {
            return Ok(None);
        }
        let misfit = turnstone_blocking::in_place(|| ArgsSchemas::of(registered).misfit(job));
        let Some(misfit) = misfit else { return Ok(None) };
        let Misfit { version, mode, why } = &misfit;
        tracing::warn!(
            job_type = job.job_type,
            version,
            why,
            "the arguments of a cron entry's job do not fit their schema"
        );
        Ok((*mode == Mode::Enforce).then(|| misfit.refusal(&job.job_type)))
    }
}
