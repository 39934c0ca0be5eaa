//! Compiled schemas of this process. What another process registers is seen after [`FRESH_MS`]; what this one registers,
//! at once.

use crate::api::App;
use crate::reply::Failure;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_domain::schema::{Mode, Schema};
use turnstone_domain::{NewJob, Timestamp};
use turnstone_ojs::OjsError;

/// How long what was read is believed.
const FRESH_MS: i64 = 2_000;
/// Job types that are remembered.
const MOST_TYPES: usize = 1_000;

/// One version, ready to be used.
struct Page {
    version: i64,
    mode: Mode,
    schema: Result<Schema, String>,
}

struct Read {
    at: Timestamp,
    /// The newest version first.
    pages: Arc<Vec<Page>>,
}

/// Compiled schemas by job type.
#[derive(Default)]
pub(crate) struct SchemaBook(Mutex<HashMap<String, Read>>);

/// What is wrong with the arguments of a job.
struct Misfit {
    version: i64,
    mode: Mode,
    why: String,
}

impl SchemaBook {
    /// A schema of this type was changed by this process.
    pub(crate) fn forget(&self, job_type: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(job_type);
    }

    /// Refuses a job whose arguments do not fit a schema that is enforced: 400 `schema_validation`.
    pub(crate) async fn check(&self, app: &App, job: &NewJob) -> Result<(), Failure> {
        match self.misfit(app, job).await? {
            Some(Misfit { version, mode: Mode::Enforce, why }) => {
                let hint = "Send arguments that fit the schema; GET /ojs/v1/admin/schemas/{type}/{version} shows it.";
                let message =
                    format!("args do not fit version {version} of the schema of {}: {why}", job.job_type);
                let error = OjsError::new(400, "schema_validation", message, hint);
                Err(error.with("field", "args").with("schema_version", version).into())
            }
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

    /// What a schema that only warns says of a job that was accepted.
    pub(crate) async fn warning(&self, app: &App, job: &NewJob) -> Result<Option<String>, Failure> {
        let misfit = self.misfit(app, job).await?.filter(|misfit| misfit.mode == Mode::Warn);
        Ok(misfit.map(|misfit| format!("version {}: {}", misfit.version, misfit.why)))
    }

    async fn misfit(&self, app: &App, job: &NewJob) -> Result<Option<Misfit>, Failure> {
        let pages = self.pages(app, &job.job_type).await?;
        let asked = job.envelope.extra.get("version").and_then(|version| version.parse::<i64>().ok());
        let page = match asked {
            Some(asked) => pages.iter().find(|page| page.version == asked),
            None => pages.first(),
        };
        let Some(page) = page.filter(|page| page.mode != Mode::Off) else { return Ok(None) };
        let fits = match (&page.schema, job.envelope.args.parse::<Value>()) {
            (Ok(schema), Ok(args)) => schema.check(&args),
            (_, Err(error)) => Err(format!("they hold a number that cannot be checked: {error}")),
            (Err(why), _) => Err(why.clone()),
        };
        Ok(fits.err().map(|why| Misfit { version: page.version, mode: page.mode, why }))
    }

    async fn pages(&self, app: &App, job_type: &str) -> Result<Arc<Vec<Page>>, Failure> {
        let now = app.api.clock.now();
        {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(read) = known.get(job_type).filter(|read| (0..FRESH_MS).contains(&now.since(read.at)))
            {
                return Ok(Arc::clone(&read.pages));
            }
        }
        let schemas = app.api.store.schemas.schemas(Some(job_type), None).await?;
        let page = |schema: turnstone_domain::schema::RegisteredSchema| Page {
            version: schema.version,
            mode: schema.mode,
            schema: match schema.mode {
                Mode::Off => Err("nobody looks".to_owned()),
                Mode::Enforce | Mode::Warn => compiled(&schema.body),
            },
        };
        let pages = Arc::new(schemas.into_iter().map(page).collect::<Vec<_>>());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_TYPES {
            known.clear();
        }
        known.insert(job_type.to_owned(), Read { at: now, pages: Arc::clone(&pages) });
        Ok(pages)
    }
}

fn compiled(body: &str) -> Result<Schema, String> {
    let schema: Value =
        serde_json::from_str(body).map_err(|error| format!("the schema cannot be read: {error}"))?;
    Schema::compile_registered(&schema)
}
