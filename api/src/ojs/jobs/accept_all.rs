//! Accepts many jobs at once: each agent is looked up once, and an error names its member.

use super::accept::{AcceptState, accept_knowing};
use crate::api::App;
use crate::reply::Failure;
use crate::request::Tenant;
use turnstone_domain::{NewJob, RawObject, Timestamp};
use turnstone_ojs::OjsError;
use turnstone_store::StoreError;

/// The members of one request.
pub(crate) struct Members<'a> {
    app: &'a App,
    tenant: &'a Tenant,
    now: Timestamp,
    known: AcceptState,
}

impl<'a> Members<'a> {
    pub(crate) fn new(app: &'a App, tenant: &'a Tenant, now: Timestamp) -> Self {
        Self { app, tenant, now, known: AcceptState::default() }
    }

    /// Checks the next member; `place` is its place in the body, and `index` its number.
    pub(crate) async fn accept(
        &mut self,
        fields: RawObject,
        place: &str,
        index: usize,
    ) -> Result<NewJob, Failure> {
        let job = accept_knowing(self.app, &mut self.known, fields, self.tenant, self.now).await;
        job.map_err(|Failure(error)| Failure(of_member(error, place, index)))
    }
}

/// Returns the store's error about one of these jobs, with its place in the body.
pub(crate) fn refused<'a>(
    error: StoreError,
    jobs: impl IntoIterator<Item = (&'a NewJob, String)>,
) -> Failure {
    let id = match &error {
        StoreError::DuplicateJob(id) => Some(id.clone()),
        StoreError::NotUnique { job, .. }
        | StoreError::TooDeep { job, .. }
        | StoreError::TreeFull { job, .. }
        | StoreError::UnknownParent { job, .. } => Some(job.clone()),
        _ => None,
    };
    let found = jobs.into_iter().enumerate().find(|(_, (job, _))| Some(&job.id) == id.as_ref());
    let failure = Failure::from(error);
    match found {
        Some((index, (_, place))) => Failure(of_member(failure.0, &place, index)),
        None => failure,
    }
}

fn of_member(error: OjsError, place: &str, index: usize) -> OjsError {
    let message = format!("{place} (the job at index {index}): {}", error.message);
    OjsError { message, ..error }.with("index", index)
}
