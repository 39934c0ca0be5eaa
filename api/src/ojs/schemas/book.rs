//! Compiled schemas of this process. Schemas that another process registers are seen after [`FRESH_MS`]; this process's
//! own at once.

use crate::blocking;
use crate::reply::Failure;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_blocking::in_place;
use turnstone_domain::schema::Mode;
use turnstone_domain::{Clock, NewJob, Timestamp};
use turnstone_ojs::{ArgsSchemas, Misfit};
use turnstone_store::Schemas;

/// How long schemas that were read are used without another query, in milliseconds.
const FRESH_MS: i64 = 2_000;
/// Job types that are remembered.
const MOST_TYPES: usize = 1_000;

struct Read {
    at: Timestamp,
    schemas: Arc<ArgsSchemas>,
}

/// Compiled schemas by job type.
pub(crate) struct SchemaBook {
    registered: Schemas,
    clock: Arc<dyn Clock>,
    compiled: Mutex<HashMap<String, Read>>,
}

impl SchemaBook {
    /// Returns a book of these registered schemas.
    pub(crate) fn new(registered: Schemas, clock: Arc<dyn Clock>) -> Self {
        Self { registered, clock, compiled: Mutex::default() }
    }

    /// Forgets the schemas of a type that this process has changed.
    pub(crate) fn forget(&self, job_type: &str) {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).remove(job_type);
    }

    /// Refuses a job whose arguments do not match an enforced schema: 400 `schema_validation`.
    pub(crate) async fn check(&self, job: &NewJob) -> Result<(), Failure> {
        match self.misfit(job).await? {
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
    pub(crate) async fn warning(&self, job: &NewJob) -> Result<Option<String>, Failure> {
        let misfit = self.misfit(job).await?.filter(|misfit| misfit.mode == Mode::Warn);
        Ok(misfit.map(|misfit| format!("version {}: {}", misfit.version, misfit.why)))
    }

    async fn misfit(&self, job: &NewJob) -> Result<Option<Misfit>, Failure> {
        let schemas = self.schemas(&job.job_type).await?;
        Ok(if schemas.is_light(job) { schemas.misfit(job) } else { in_place(|| schemas.misfit(job)) })
    }

    async fn schemas(&self, job_type: &str) -> Result<Arc<ArgsSchemas>, Failure> {
        let now = self.clock.now();
        {
            let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(read) = known.get(job_type).filter(|read| (0..FRESH_MS).contains(&now.since(read.at)))
            {
                return Ok(Arc::clone(&read.schemas));
            }
        }
        let registered = self.registered.schemas(Some(job_type), None).await?;
        let schemas = match registered.is_empty() {
            true => Arc::default(),
            false => Arc::new(blocking::run(move || ArgsSchemas::of(registered)).await?),
        };
        let mut known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_TYPES {
            known.clear();
        }
        known.insert(job_type.to_owned(), Read { at: now, schemas: Arc::clone(&schemas) });
        Ok(schemas)
    }
}
