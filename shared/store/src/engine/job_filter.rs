//! The statements over a filter of jobs, and their parameters.

use super::rows::get;
use super::session::{Arg, Reader};
use super::views::one;
use crate::sql::{self, Text};
use crate::{JobFilter, JobOrder, StoreError};
use turnstone_domain::JobState;

/// Returns the first parameters of every statement over a filter of jobs.
pub(super) fn matching(filter: &JobFilter) -> Vec<Arg<'_>> {
    let values = [
        filter.state.map(JobState::as_str).into(),
        filter.queue.as_deref().into(),
        filter.job_type.as_deref().into(),
        filter.tenant.as_deref().into(),
        Arg::Int(filter.since.map(|at| at.0)),
        Arg::Int(filter.until.map(|at| at.0)),
        filter.agent.as_deref().into(),
        filter.error_code.as_deref().into(),
    ];
    values.into_iter().chain(filter.tag.as_deref().map(Arg::from)).collect()
}

/// Returns the statement for a filter: the first, or the second one for jobs with a tag.
pub(super) fn of_tag(filter: &JobFilter, of_jobs: &'static Text, of_tagged: &'static Text) -> &'static Text {
    if filter.tag.is_some() { of_tagged } else { of_jobs }
}

/// The statement that lists in this order, and what it takes after the filter. `after` is a job's number.
pub(super) fn listed(filter: &JobFilter, after: Option<i64>) -> (&'static Text, Vec<Arg<'static>>) {
    let column = match filter.order {
        JobOrder::Accepted => {
            let text = if filter.ascending {
                of_tag(filter, &sql::SELECT_OLDEST_JOBS, &sql::SELECT_OLDEST_TAGGED_JOBS)
            } else {
                of_tag(filter, &sql::SELECT_JOBS, &sql::SELECT_TAGGED_JOBS)
            };
            return (text, vec![Arg::Int(after)]);
        }
        JobOrder::Priority => "priority",
        JobOrder::Attempt => "attempt",
        JobOrder::Due => "run_at",
        JobOrder::Ended => "ended_at",
    };
    let direction = if filter.ascending { 1_i64 } else { -1 };
    let text = of_tag(filter, &sql::SELECT_SORTED_JOBS, &sql::SELECT_SORTED_TAGGED_JOBS);
    (text, vec![column.into(), direction.into()])
}

/// Returns the number of the job after which a list continues, if it does.
///
/// # Errors
/// [`StoreError::UnknownPlace`] when the job is not stored: a deleted job has no place any more.
pub(super) async fn place_of(reader: &Reader, filter: &JobFilter) -> Result<Option<i64>, StoreError> {
    let Some(id) = &filter.after else { return Ok(None) };
    let values = [id.as_str().into(), filter.tenant.as_deref().into()];
    let (action, text) = ("find a job's place", &sql::SELECT_JOB_BY_ID);
    let place = one(reader, action, text, &values, |row| get::<i64>(row, "seq")).await?;
    place.map(Some).ok_or_else(|| StoreError::UnknownPlace(id.clone()))
}
