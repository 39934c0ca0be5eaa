//! Budgets as operators see them: set, raised, forgotten; and the jobs that waited for them resume.

mod own;
mod resume;
mod shared;

pub(in super::super) use own::set as set_own;
pub(super) use resume::{find_lost, resume_due};
pub(in super::super) use shared::{forget, raise, set};
pub(super) use shared::{of_manifest, without_manifest};

/// A limit with something added, where there is one.
fn raised(limit: Option<i64>, by: i64) -> Option<i64> {
    limit.map(|limit| limit.saturating_add(by))
}
