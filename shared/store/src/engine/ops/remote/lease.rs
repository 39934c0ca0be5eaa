//! The lease tokens of workers over HTTP: a report with one concerns the attempt that it was given for, and no other.

use crate::engine::rows::JobRow;
use turnstone_domain::JobState;
use turnstone_domain::ids::of_parts;

/// Returns the token of the job's lease, as its worker gets it; `None` without a lease. It derives from the fencing token,
/// which has random bits that stay in the store, and does not reveal it.
pub(in crate::engine) fn token(job: &JobRow) -> Option<String> {
    let fencing = job.lease_token.as_deref()?;
    Some(of_parts(&["lease", job.id.as_str(), fencing]))
}

/// Returns true if a request with this token is one of an earlier attempt, or of another job. Without a token, nothing says
/// for which attempt it is.
pub(in crate::engine) fn is_stale(job: &JobRow, sent: Option<&str>) -> bool {
    sent.is_some_and(|sent| job.state != JobState::Active || token(job).as_deref() != Some(sent))
}
