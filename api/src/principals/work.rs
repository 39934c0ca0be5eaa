//! The check before an operation that creates, repeats or moves work. [`Principal::may_cause_work`] has the rule.

use crate::api::App;
use crate::reply::Failure;
use crate::request::Tenant;
use turnstone_domain::JobId;
use turnstone_domain::engagement::User;
use turnstone_domain::principal::{Principal, Role, WorkKind};
use turnstone_ojs::OjsError;

/// Checks that a principal may cause work for the user of this id; `None` is work without a user.
///
/// # Errors
/// 403 with the user.
pub(crate) fn check(principal: &Principal, kind: WorkKind, user: Option<&str>) -> Result<(), Failure> {
    let Some(refused) = user.filter(|_| !principal.may_cause_work(kind, user)) else { return Ok(()) };
    let message = format!("{} may not act for user {refused}.", principal.name);
    let hint = match kind {
        WorkKind::Chosen => {
            "Leave the user out where a request names one, or use a key that acts for this user: \
             `turnstone key create --acts-for`."
        }
        WorkKind::Unchanged => "Use a key with the role operator, or one that acts for this user.",
    };
    Err(OjsError::new(403, "forbidden", message, hint).with("user", refused).into())
}

/// Checks the same for the user of an engagement.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_user(principal: &Principal, kind: WorkKind, user: &User) -> Result<(), Failure> {
    check(principal, kind, user.is_known().then_some(user.id.as_str()))
}

/// Checks the same for the user of a job. The store reports a job that does not exist, and plain jobs have no user.
///
/// # Errors
/// As [`check`], 409 for an id that several tenants chose, and the error of the store.
pub(crate) async fn check_job(app: &App, id: &JobId, tenant: &Tenant, kind: WorkKind) -> Result<(), Failure> {
    if tenant.principal.acts_for_anyone() {
        return Ok(());
    }
    match app.api.store.views.engagement_of_job(id, tenant.name()).await? {
        Some((engagement, _)) => check_user(&tenant.principal, kind, &engagement.user),
        None => Ok(()),
    }
}

/// Checks work that changes later work of all users of a tenant.
///
/// # Errors
/// 403 for a principal that neither acts for every user nor configures as an operator.
pub(crate) fn check_everyone(principal: &Principal) -> Result<(), Failure> {
    if principal.acts_for_anyone() || principal.has(Role::Operator) {
        return Ok(());
    }
    let message = format!("{} may not change what applies to every user of the agent.", principal.name);
    let hint =
        "Configure a run of your own by its run_id, or use a key with the role operator or `--acts-for '*'`.";
    Err(OjsError::new(403, "forbidden", message, hint).with("role", Role::Operator.as_str()).into())
}

/// Checks the e-mail address that a request states for a user. Policies read it, so it is refused unless the principal
/// may be believed.
///
/// # Errors
/// 403 with the member.
pub(crate) fn check_email(principal: &Principal, user: &str, email: Option<&str>) -> Result<(), Failure> {
    let Some(email) = email.filter(|email| !principal.may_state_email(user, email)) else { return Ok(()) };
    let shown: String = email.chars().take(80).collect();
    let message =
        format!("meta.user.email: {} may not state the address {shown:?} of user {user}.", principal.name);
    let hint = "Leave the address out: the verified one of a token is added. A key that acts for the user may state it.";
    Err(OjsError::new(403, "forbidden", message, hint).with("field", "meta.user.email").into())
}
