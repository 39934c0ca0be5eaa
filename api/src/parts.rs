//! Lists in parts: the position of a part, and lists of jobs.

use crate::api::App;
use crate::reply::Failure;
use serde::Serialize;
use turnstone_domain::{Job, JobId};
use turnstone_ojs::JobBody;
use turnstone_store::{JobFilter, JobOrder, JobsWithMeta, Page};
use utoipa::ToSchema;

/// The position of a page in its list.
#[derive(Serialize, ToSchema)]
#[schema(as = Pagination)]
pub(crate) struct PagePosition {
    pub(crate) total: u64,
    pub(crate) page: u32,
    pub(crate) per_page: u32,
}

/// The position of a part in its list.
#[derive(Serialize, ToSchema)]
#[schema(as = Slice)]
pub(crate) struct SlicePosition {
    total: u64,
    limit: u32,
    offset: u32,
    has_more: bool,
}

impl SlicePosition {
    /// Returns the position of the part that `page` selects, of which `shown` are here.
    pub(crate) fn of(total: u64, page: Page, shown: usize) -> Self {
        let seen = u64::from(page.offset).saturating_add(shown as u64);
        Self { total, limit: page.limit, offset: page.offset, has_more: seen < total }
    }
}

/// The position of a part in a list that continues after its last element.
#[derive(Serialize, ToSchema)]
#[schema(as = ContinuedSlice)]
pub(crate) struct ContinuedPosition {
    pub(crate) total: u64,
    pub(crate) limit: u32,
    pub(crate) offset: u32,
    pub(crate) has_more: bool,
    /// To be sent as `after`, instead of `offset`, for the next part; null at the end.
    pub(crate) next_after: Option<String>,
}

/// The position of a part in a list that continues with a cursor (OJS HTTP binding §3.5).
#[derive(Serialize, ToSchema)]
#[schema(as = CursorSlice)]
pub(crate) struct CursorPosition {
    total: u64,
    limit: u32,
    offset: u32,
    has_more: bool,
    /// To be sent as `cursor` for the next part; null at the end.
    next_cursor: Option<String>,
}

impl CursorPosition {
    pub(crate) fn of(Page { limit, offset }: Page, total: u64) -> Self {
        let next = u64::from(offset) + u64::from(limit);
        let has_more = next < total;
        Self { total, limit, offset, has_more, next_cursor: has_more.then(|| next.to_string()) }
    }
}

/// Jobs, newest first unless said otherwise.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobPage {
    items: Vec<JobBody>,
    pagination: JobPagePosition,
}

/// The position of a page in a list of jobs.
#[derive(Serialize, ToSchema)]
#[schema(as = JobPagination)]
struct JobPagePosition {
    /// Not in a list by `meta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Not in a list by `meta`, and not with `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
    per_page: u32,
    has_more: bool,
    /// To be sent as `after`, instead of `page`, for the next part; null at the end. Jobs that arrive meanwhile do not
    /// move it.
    next_after: Option<String>,
}

/// A part of a list of jobs.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobSlice {
    jobs: Vec<JobBody>,
    pagination: JobSlicePosition,
}

/// The position of a part in a list of jobs.
#[derive(Serialize, ToSchema)]
#[schema(as = JobSlicePagination)]
struct JobSlicePosition {
    /// Not in a list by `meta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    limit: u32,
    /// Not in a list by `meta`, and not with `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u32>,
    has_more: bool,
    /// To be sent as `cursor` for the next part; null at the end. Not in a list by `meta`, and not with `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    next_cursor: Option<Option<String>>,
    /// To be sent as `after` for the next part; null at the end. Jobs that arrive meanwhile do not move it.
    next_after: Option<String>,
}

/// A part of the jobs of a filter.
pub(crate) struct JobPart {
    jobs: Vec<JobBody>,
    slice: Page,
    /// The number of all jobs. Those with a member of `meta` are not counted: that would read all jobs.
    total: Option<u64>,
    /// True if the part is counted from the beginning of the list.
    is_placed: bool,
    has_more: bool,
    next_after: Option<String>,
}

impl JobPart {
    /// Reads a part.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn read(app: &App, filter: &JobFilter, slice: Page) -> Result<Self, Failure> {
        let views = &app.api.store.views;
        let filter = &placed(app, filter.clone()).await?;
        let place = |id: &JobId| place_of(id, filter.tenant.as_deref());
        if filter.meta.is_some() {
            let JobsWithMeta { jobs, next_after } = views.jobs_with_meta(filter, slice.limit).await?;
            let (has_more, next_after) = (next_after.is_some(), next_after.as_ref().map(place));
            return Ok(Self {
                jobs: bodies(&jobs),
                slice,
                total: None,
                is_placed: false,
                has_more,
                next_after,
            });
        }
        // One job more shows that more follow.
        let one_more = Page { limit: slice.limit.saturating_add(1), ..slice };
        let (mut jobs, total) = views.jobs(filter, one_more).await?;
        let has_more = jobs.len() > slice.limit as usize;
        jobs.truncate(slice.limit as usize);
        let last = jobs.last().filter(|_| has_more && filter.order == JobOrder::Accepted);
        let (jobs, next_after) = (bodies(&jobs), last.map(|job| place(&job.id)));
        Ok(Self { jobs, slice, total: Some(total), is_placed: filter.after.is_none(), has_more, next_after })
    }

    /// Returns it as the page of this number.
    pub(crate) fn page(self, page: u32) -> JobPage {
        let Self { jobs, slice, total, is_placed, has_more, next_after } = self;
        let page = is_placed.then_some(page);
        let pagination = JobPagePosition { total, page, per_page: slice.limit, has_more, next_after };
        JobPage { items: jobs, pagination }
    }

    /// Returns it as a part of a data list.
    pub(crate) fn slice(self) -> JobSlice {
        let Self { jobs, slice, total, is_placed, has_more, next_after } = self;
        let cursor = |total| CursorPosition::of(slice, total).next_cursor;
        let next_cursor = total.filter(|_| is_placed).map(cursor);
        let (limit, offset) = (slice.limit, is_placed.then_some(slice.offset));
        let pagination = JobSlicePosition { total, limit, offset, has_more, next_cursor, next_after };
        JobSlice { jobs, pagination }
    }
}

/// Returns a filter with the unique id of the job after which its list continues. Without a tenant, the job is looked for.
///
/// # Errors
/// 409 when several tenants have a job with this id; the error of the store.
pub(crate) async fn placed(app: &App, filter: JobFilter) -> Result<JobFilter, Failure> {
    let after = match (&filter.after, &filter.tenant) {
        (Some(after), None) => Some(app.api.store.views.unique_id(after).await?),
        (after, _) => after.clone(),
    };
    Ok(JobFilter { after, ..filter })
}

/// Returns the place of a job in a list: the id that clients of the tenant know, or the unique one in a list of all tenants.
fn place_of(id: &JobId, tenant: Option<&str>) -> String {
    if tenant.is_some() { id.shown().to_owned() } else { id.as_str().to_owned() }
}

/// Returns jobs as clients read them.
pub(crate) fn bodies(jobs: &[Job]) -> Vec<JobBody> {
    jobs.iter().map(JobBody::from).collect()
}
