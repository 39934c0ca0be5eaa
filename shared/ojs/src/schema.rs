//! Checks the arguments of a job against the registered schemas (OJS schema registry §7): the same for a client's jobs
//! and for those of cron entries.

use crate::{OjsError, names};
use serde_json::Value;
use turnstone_domain::NewJob;
use turnstone_domain::schema::{Mode, RegisteredSchema, Schema};

/// The schemas of one job type, ready to be used.
#[derive(Debug, Default)]
pub struct ArgsSchemas {
    /// The newest version first.
    versions: Vec<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    version: i64,
    mode: Mode,
    schema: Result<Schema, String>,
}

/// The problems of a job's arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit {
    /// The version of the schema.
    pub version: i64,
    /// The treatment of the job: it is refused, or accepted with a warning.
    pub mode: Mode,
    /// The problems, each with its place in the arguments.
    pub why: String,
}

impl ArgsSchemas {
    /// Compiles the registered schemas of a job type, the newest version first.
    #[must_use]
    pub fn of(registered: Vec<RegisteredSchema>) -> Self {
        let compiled = |schema: RegisteredSchema| Compiled {
            version: schema.version,
            mode: schema.mode,
            schema: match schema.mode {
                Mode::Off => Err("schemas are not checked in this mode".to_owned()),
                Mode::Enforce | Mode::Warn => compiled(&schema.body),
            },
        };
        Self { versions: registered.into_iter().map(compiled).collect() }
    }

    /// Returns the schema of the version that the job names, else the newest one; `None` when its mode is `off`.
    fn asked_by(&self, job: &NewJob) -> Option<&Compiled> {
        let found = match job.envelope.extra.given("version") {
            Some(requested) => {
                let requested = names::schema_version_of(requested)?;
                self.versions.iter().find(|known| known.version == requested)
            }
            None => self.versions.first(),
        };
        found.filter(|known| known.mode != Mode::Off)
    }

    /// Returns whether [`misfit`](Self::misfit) of this job takes no longer than a moment.
    #[must_use]
    pub fn is_light(&self, job: &NewJob) -> bool {
        let schema = self.asked_by(job).and_then(|found| found.schema.as_ref().ok());
        schema.is_none_or(|schema| schema.is_light(job.envelope.args.as_str().len()))
    }

    /// Checks the job's arguments against the version that it names, else the newest one. A version that is not
    /// registered is not checked.
    #[must_use]
    pub fn misfit(&self, job: &NewJob) -> Option<Misfit> {
        let Compiled { version, mode, schema } = self.asked_by(job)?;
        let fits = match (schema, job.envelope.args.parse::<Value>()) {
            (Ok(schema), Ok(args)) => schema.check(&args),
            (_, Err(error)) => Err(format!("they hold a number that cannot be checked: {error}")),
            (Err(why), _) => Err(why.clone()),
        };
        fits.err().map(|why| Misfit { version: *version, mode: *mode, why })
    }
}

impl Misfit {
    /// Returns the refusal of a job of this type: 400 `schema_validation`.
    #[must_use]
    pub fn refusal(&self, job_type: &str) -> OjsError {
        let Self { version, why, .. } = self;
        let hint = "Send arguments that fit the schema; GET /ojs/v1/admin/schemas/{type}/{version} shows it.";
        let message = format!("args do not fit version {version} of the schema of {job_type}: {why}");
        let error = OjsError::new(400, "schema_validation", message, hint);
        error.with("field", "args").with("schema_version", *version)
    }
}

fn compiled(body: &str) -> Result<Schema, String> {
    let schema: Value =
        serde_json::from_str(body).map_err(|error| format!("the schema cannot be read: {error}"))?;
    Schema::compile_registered(&schema)
}
