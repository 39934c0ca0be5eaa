//! Compiled schemas of this process. Schemas that another process registers are seen after [`FRESH_MS`]; this process's
//! own at once.

use crate::api::App;
use crate::blocking;
use crate::reply::Failure;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_blocking::in_place;
use turnstone_domain::schema::Mode;
use turnstone_domain::{NewJob, Timestamp};
use turnstone_ojs::{ArgsSchemas, Misfit};

/// How long schemas that were read are used without another query, in milliseconds.
const FRESH_MS: i64 = 2_000;
/// Job types that are remembered.
const MOST_TYPES: usize = 1_000;

struct Read {
    at: Timestamp,
    schemas: Arc<ArgsSchemas>,
}

/// Compiled schemas by job type.
#[derive(Default)]
pub(crate) struct SchemaBook(Mutex<HashMap<String, Read>>);

impl SchemaBook {
    /// Forgets the schemas of a type that this process has changed.
    pub(crate) fn forget(&self, job_type: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(job_type);
    }

    /// Refuses a job whose arguments do not match an enforced schema: 400 `schema_validation`.
    pub(crate) async fn check(&self, app: &App, job: &NewJob) -> Result<(), Failure> {
        match self.misfit(app, job).await? {
            Some(misfit) if misfit.mode == Mode::Enforce => Err(misfit.refusal(&job.job_type).into()),
            Some(Misfit { version, why, .. }) => {
                tracing::warn!(
                    job_type = job.job_type,
                    version,
                    why,
                    "the arguments of a job do not fit their schema"
                );
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Returns the warning of a schema in mode `warn` about an accepted job.
    pub(crate) async fn warning(&self, app: &App, job: &NewJob) -> Result<Option<String>, Failure> {
        let misfit = self.misfit(app, job).await?.filter(|misfit| misfit.mode == Mode::Warn);
        Ok(misfit.map(|misfit| format!("version {}: {}", misfit.version, misfit.why)))
    }

    async fn misfit(&self, app: &App, job: &NewJob) -> Result<Option<Misfit>, Failure> {
        let schemas = self.schemas(app, &job.job_type).await?;
        Ok(if schemas.is_light(job) { schemas.misfit(job) } else { in_place(|| schemas.misfit(job)) })
    }

    async fn schemas(&self, app: &App, job_type: &str) -> Result<Arc<ArgsSchemas>, Failure> {
        let now = app.api.clock.now();
        {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(read) = known.get(job_type).filter(|read| (0..FRESH_MS).contains(&now.since(read.at)))
            {
                return Ok(Arc::clone(&read.schemas));
            }
        }
        let registered = app.api.store.schemas.schemas(Some(job_type), None).await?;
        let schemas = match registered.is_empty() {
            true => Arc::default(),
            false => Arc::new(blocking::run(move || ArgsSchemas::of(registered)).await?),
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_TYPES {
            known.clear();
        }
        known.insert(job_type.to_owned(), Read { at: now, schemas: Arc::clone(&schemas) });
        Ok(schemas)
    }
}
