//! Why an action on a job was refused.

use crate::reply::Failure;
use turnstone_domain::JobId;
use turnstone_ojs::OjsError;
use turnstone_store::RemoteOutcome;

/// Returns the refusal of a request whose token is not that of the job's lease.
pub(super) fn stale(job: &JobId, what: &str) -> OjsError {
    let message =
        format!("Job {job} {what}: the lease token is one of an earlier attempt, or of another job.");
    OjsError::stale_lease(message).with("job_id", job.shown())
}

/// Returns the result, or the error with the reason. `what` completes a sentence that begins with the job:
/// `cannot be acknowledged`.
pub(super) fn done<T>(outcome: RemoteOutcome<T>, job: &JobId, what: &str) -> Result<T, Failure> {
    Err(match outcome {
        RemoteOutcome::Done(done) => return Ok(done),
        RemoteOutcome::NotFound => OjsError::not_found("job", job.shown()),
        RemoteOutcome::WrongState(state) => {
            OjsError::conflict(format!("Job {job} {what}: it is {state}.")).with("state", state.as_str())
        }
        RemoteOutcome::NotYours { holder } => {
            let message = format!("Job {job} {what}: worker `{holder}` holds it.");
            OjsError::conflict(message).with("worker_id", holder)
        }
        RemoteOutcome::StaleLease => stale(job, what),
        RemoteOutcome::OfSeveralTenants(tenants) => {
            OjsError::ambiguous(job.shown(), &tenants.into_iter().map(Some).collect::<Vec<_>>())
        }
        RemoteOutcome::NotForYou => {
            let message = format!(
                "Job {job} {what} here: it is an agent's job, and one of Turnstone's own workers or a review decides."
            );
            OjsError::conflict(message)
        }
    }
    .into())
}
