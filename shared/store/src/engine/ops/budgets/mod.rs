//! Budgets as operators see them: set, raised, forgotten; and jobs that waited for that go on.

mod own;
mod resume;
mod shared;

pub(super) use resume::resume_due;
pub(super) use shared::{of_manifest, without_manifest};

use super::super::session::Session;
use super::super::unit::Unit;
use crate::{OwnBudget, Raise, StoreError};
use turnstone_domain::budget::{Budget, BudgetRule};
use turnstone_domain::{EngagementId, Timestamp};

/// What is asked.
pub(in super::super) enum Request {
    Set { rule: BudgetRule, given: Option<String>, now: Timestamp },
    Raise { name: String, tenant: Option<String>, by: Raise, now: Timestamp },
    Forget { name: String, tenant: Option<String>, now: Timestamp },
    SetOwn { engagement: EngagementId, tenant: Option<String>, change: OwnBudget, now: Timestamp },
}

/// What became of it.
pub(in super::super) enum Answer {
    Changed(bool),
    Raised(Option<BudgetRule>),
    Own(Option<Budget>),
}

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    request: &Request,
) -> Result<Answer, StoreError> {
    Ok(match request {
        Request::Set { rule, given, now } => {
            Answer::Changed(shared::set(session, unit, rule, given.as_deref(), *now).await?)
        }
        Request::Raise { name, tenant, by, now } => {
            Answer::Raised(shared::raise(session, unit, name, tenant.as_deref(), *by, *now).await?)
        }
        Request::Forget { name, tenant, now } => {
            Answer::Changed(shared::forget(session, unit, name, tenant.as_deref(), *now).await?)
        }
        Request::SetOwn { engagement, tenant, change, now } => {
            Answer::Own(own::set(session, unit, engagement, tenant.as_deref(), change, *now).await?)
        }
    })
}

/// A limit with something added, where there is one.
fn raised(limit: Option<i64>, by: i64) -> Option<i64> {
    limit.map(|limit| limit.saturating_add(by))
}
