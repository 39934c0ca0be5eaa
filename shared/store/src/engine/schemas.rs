//! What the arguments of a job type have to look like: the calls.

use super::Engine;
use super::ops::schemas::Request as Asked;
use super::rows::{Fields, Inconsistency, get, time, word};
use super::session::{Arg, Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer, Request};
use crate::{Schemas, StoreError, sql};
use async_trait::async_trait;
use turnstone_domain::schema::{Mode, RegisteredSchema};

fn schema(row: &impl Fields) -> Result<RegisteredSchema, Inconsistency> {
    Ok(RegisteredSchema {
        job_type: get(row, "job_type")?,
        version: get(row, "version")?,
        mode: word(row, "mode", Mode::parse)?,
        body: get(row, "body")?,
        created_at: time(row, "created_at")?,
    })
}

impl<R: Reader> Engine<R> {
    async fn of_schemas(&self, asked: Asked) -> Result<usize, StoreError> {
        match self.request(Request::Schemas(asked)).await? {
            Answer::Schemas(rows) => Ok(rows),
            _ => Err(StoreError::Closed),
        }
    }
}

#[async_trait]
impl<R: Reader> Schemas for Engine<R> {
    async fn register(&self, schema: RegisteredSchema) -> Result<bool, StoreError> {
        Ok(self.of_schemas(Asked::Register(Box::new(schema))).await? > 0)
    }

    async fn schemas(
        &self,
        job_type: Option<&str>,
        version: Option<i64>,
    ) -> Result<Vec<RegisteredSchema>, StoreError> {
        let values = [job_type.into(), Arg::Int(version)];
        let rows = self.readers.read("list schemas", &sql::SELECT_SCHEMAS, Args::Values(&values)).await?;
        decode_all(&rows, schema)
    }

    async fn set_mode(&self, job_type: &str, version: Option<i64>, mode: Mode) -> Result<usize, StoreError> {
        self.of_schemas(Asked::SetMode { job_type: job_type.to_owned(), version, mode }).await
    }

    async fn remove(&self, job_type: &str, version: i64) -> Result<bool, StoreError> {
        Ok(self.of_schemas(Asked::Remove { job_type: job_type.to_owned(), version }).await? > 0)
    }
}
