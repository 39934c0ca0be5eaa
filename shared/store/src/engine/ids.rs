//! Jobs by their ids, and ids of jobs and engagements by their first characters.

use super::rows::{JobRow, get};
use super::session::{Arg, Reader, Row};
use super::views::{Views, all};
use crate::StoreError;
use crate::sql::{self, Text};
use async_recursion::async_recursion as boxed;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::ids::{IdPrefix, shown};
use turnstone_domain::{AgentDefinition, EngagementId, Job, JobId};

impl Views {
    /// One job, with its result, errors and agent side.
    #[boxed]
    pub async fn job(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        let values = [id.as_str().into(), Arg::Text(None)];
        self.whole("read a job", &sql::SELECT_JOB_BY_ID, &values).await
    }

    /// The job with this id that a client sent for this tenant, or for any tenant with `None`.
    ///
    /// # Errors
    /// [`StoreError::AmbiguousId`] when several tenants have a job with this id.
    #[boxed]
    pub async fn job_of(&self, id: &JobId, tenant: Option<&str>) -> Result<Option<Job>, StoreError> {
        let values = [id.as_str().into(), tenant.into()];
        match tenant {
            Some(_) => self.whole("read a job", &sql::SELECT_JOB_BY_ID, &values).await,
            None => self.whole("read a job", &sql::SELECT_JOBS_OF_ANY_TENANT, &values[..1]).await,
        }
    }

    /// Returns the engagement of a job of this tenant, with its agent; `None` for a plain or unknown job.
    ///
    /// # Errors
    /// As [`Views::job_of`].
    #[boxed]
    pub async fn engagement_of_job(
        &self,
        job: &JobId,
        tenant: Option<&str>,
    ) -> Result<Option<(Engagement, AgentDefinition)>, StoreError> {
        let Some(side) = self.job_of(job, tenant).await?.and_then(|job| job.agent) else { return Ok(None) };
        let found = self.engagement(&side.engagement_id).await?;
        Ok(found.map(|(engagement, agent, _)| (engagement, agent)))
    }

    async fn whole(
        &self,
        action: &'static str,
        text: &'static Text,
        values: &[Arg<'_>],
    ) -> Result<Option<Job>, StoreError> {
        let mut rows = all(&self.0.readers, action, text, values, JobRow::decode).await?;
        refuse_several(rows.iter().map(|row| (row.id.as_str(), row.tenant.as_deref())))?;
        rows.truncate(1);
        Ok(self.0.complete(rows).await?.pop())
    }

    /// Returns a job with all that is on record, for its export: also the words of a delegate that only its caller shows.
    #[boxed]
    pub async fn recorded_job(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        let values = [id.as_str().into(), Arg::Text(None)];
        let rows =
            all(&self.0.readers, "read a job", &sql::SELECT_JOB_BY_ID, &values, JobRow::decode).await?;
        Ok(self.0.complete_record(rows).await?.pop())
    }

    /// Returns the unique form of a job's id that a client sent without a tenant; the id itself when there is no such job.
    ///
    /// # Errors
    /// [`StoreError::AmbiguousId`] when several tenants have a job with this id.
    #[boxed]
    pub async fn unique_id(&self, id: &JobId) -> Result<JobId, StoreError> {
        let (action, text) = ("look for a job", &sql::SELECT_JOBS_OF_ANY_TENANT);
        let decode = |row: &Row| Ok((get::<JobId>(row, "id")?, get::<Option<String>>(row, "tenant")?));
        let found = all(&self.0.readers, action, text, &[id.as_str().into()], decode).await?;
        refuse_several(found.iter().map(|(id, tenant)| (id.as_str(), tenant.as_deref())))?;
        Ok(found.into_iter().next().map_or_else(|| id.clone(), |(unique, _)| unique))
    }

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

/// Refuses an id that jobs or workflows of several tenants have.
pub(super) fn refuse_several<'a>(
    found: impl ExactSizeIterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<(), StoreError> {
    if found.len() < 2 {
        return Ok(());
    }
    let (ids, tenants): (Vec<&str>, Vec<Option<&str>>) = found.unzip();
    let id = ids.first().map(|id| shown(id).to_owned()).unwrap_or_default();
    Err(StoreError::AmbiguousId {
        id,
        tenants: tenants.into_iter().map(|tenant| tenant.map(str::to_owned)).collect(),
    })
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
