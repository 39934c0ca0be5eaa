//! Ids of jobs and engagements by their first characters.

use super::rows::get;
use super::session::Reader;
use super::views::{Views, all};
use crate::StoreError;
use crate::sql::{self, Text};
use async_recursion::async_recursion as boxed;
use turnstone_domain::ids::IdPrefix;
use turnstone_domain::{EngagementId, JobId};

impl Views {
    /// Returns ids of jobs that begin like this, the lowest first, at most `limit`. `tenant` restricts them to the jobs
    /// of one tenant.
    #[boxed]
    pub async fn job_ids(
        &self,
        prefix: &IdPrefix,
        tenant: Option<&str>,
        limit: u32,
    ) -> Result<Vec<JobId>, StoreError> {
        let found = beginning_with(&self.0.readers, &sql::SELECT_JOB_IDS, (prefix, tenant, limit)).await?;
        Ok(found.into_iter().map(JobId).collect())
    }

    /// Returns ids of engagements that begin like this, the lowest first, at most `limit`. `tenant` restricts them to
    /// engagements with a job of one tenant.
    #[boxed]
    pub async fn engagement_ids(
        &self,
        prefix: &IdPrefix,
        tenant: Option<&str>,
        limit: u32,
    ) -> Result<Vec<EngagementId>, StoreError> {
        let found =
            beginning_with(&self.0.readers, &sql::SELECT_ENGAGEMENT_IDS, (prefix, tenant, limit)).await?;
        Ok(found.into_iter().map(EngagementId).collect())
    }
}

/// Whole ids are the bounds, so every collation of the database gives the same ones.
async fn beginning_with(
    reader: &Reader,
    text: &Text,
    (prefix, tenant, limit): (&IdPrefix, Option<&str>, u32),
) -> Result<Vec<String>, StoreError> {
    let (lowest, highest) = (prefix.lowest(), prefix.highest());
    let values = [lowest.as_str().into(), highest.as_str().into(), tenant.into(), limit.into()];
    all(reader, "find ids", text, &values, |row| get(row, "id")).await
}
