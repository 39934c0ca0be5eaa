//! The schemas of job types' arguments.

use super::Engine;
use super::ops::schemas as ops;
use super::rows::{Fields, Inconsistency, get};
use super::session::Arg;
use super::views::{all, many};
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::schema::{Mode, RegisteredSchema};

fn schema(row: &impl Fields) -> Result<RegisteredSchema, Inconsistency> {
    Ok(RegisteredSchema {
        job_type: get(row, "job_type")?,
        version: get(row, "version")?,
        mode: get::<Mode>(row, "mode")?,
        body: get(row, "body")?,
        created_at: get(row, "created_at")?,
    })
}

/// The schemas of job types' arguments.
#[derive(Clone)]
pub struct Schemas(pub(super) Arc<Engine>);

impl Schemas {
    /// Registers a version; returns false, and changes nothing, when it is there already.
    #[boxed]
    pub async fn register(&self, schema: RegisteredSchema) -> Result<bool, StoreError> {
        self.0.write(schema, |tx, schema| Box::pin(ops::register(&mut tx.session, schema))).await
    }

    /// Returns schemas by job type, the newest version first; `None` means every type.
    #[boxed]
    pub async fn schemas(
        &self,
        job_type: Option<&str>,
        version: Option<i64>,
    ) -> Result<Vec<RegisteredSchema>, StoreError> {
        let values = [job_type.into(), Arg::Int(version)];
        match job_type {
            Some(_) => all(&self.0.readers, "read schemas", &sql::SELECT_SCHEMAS, &values, schema).await,
            None => many(&self.0.readers, "list schemas", &sql::SELECT_SCHEMAS, &values, schema).await,
        }
    }

    /// Sets the mode of one version, or of all; returns how many there are.
    #[boxed]
    pub async fn set_mode(
        &self,
        job_type: &str,
        version: Option<i64>,
        mode: Mode,
    ) -> Result<usize, StoreError> {
        self.0
            .write((job_type.to_owned(), version, mode), |tx, (job_type, version, mode)| {
                Box::pin(ops::set_mode(&mut tx.session, job_type, *version, *mode))
            })
            .await
    }

    /// Removes a version; returns whether there was one.
    #[boxed]
    pub async fn remove(&self, job_type: &str, version: i64) -> Result<bool, StoreError> {
        self.0
            .write((job_type.to_owned(), version), |tx, (job_type, version)| {
                Box::pin(ops::remove(&mut tx.session, job_type, *version))
            })
            .await
    }
}
