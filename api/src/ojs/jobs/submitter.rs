//! The submitter of an agent's job. The user that a job names counts only within what its principal may act for. The
//! principal is kept in the job's `meta`, so that it cannot approve what it submitted.

use crate::api::App;
use crate::principals::work;
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::Value;
use turnstone_domain::RawObject;
use turnstone_domain::principal::{Principal, SUBMITTED_BY, WorkKind};
use turnstone_ojs::{OjsError, agent_fields};

/// The place from which the members of a job come.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MembersFrom {
    /// A request.
    #[default]
    Request,
    /// A job or cron entry that was checked when it was stored; its e-mail address counts.
    Store,
}

/// Applies the principal to the members of a job.
///
/// # Errors
/// 403 when the job names a user for whom the principal may not act, or an e-mail address that it may not state.
pub(super) fn apply(fields: &mut RawObject, principal: &Principal, from: MembersFrom) -> Result<(), Failure> {
    let identity = principal.identity.as_deref();
    if identity.is_none() && principal.acts_for_anyone() {
        return Ok(());
    }
    let Some(mut meta) = meta_of_agents(fields) else { return Ok(()) };
    let user = meta.given("user").cloned();
    let value = user.as_ref().and_then(|user| user.parse::<Value>().ok());
    match value.as_ref().and_then(|user| user["id"].as_str()) {
        Some(id) => {
            work::check(principal, WorkKind::Chosen, Some(id))?;
            let email = value.as_ref().and_then(|user| user["email"].as_str());
            if from == MembersFrom::Request {
                work::check_email(principal, id, email)?;
            }
            let own = principal.email.as_deref().filter(|_| id == principal.name && email.is_none());
            let known = user.and_then(|user| user.parse::<RawObject>().ok());
            if let Some((email, mut user)) = own.zip(known).filter(|_| from == MembersFrom::Request) {
                user.insert("email", email);
                meta.insert("user", user);
            }
        }
        None if user.is_none() && !principal.acts_for_anyone() => {
            let mut own = RawObject::new();
            own.insert("id", principal.name.as_str());
            if let Some(email) = principal.email.as_deref() {
                own.insert("email", email);
            }
            meta.insert("user", own);
        }
        None => {}
    }
    if let Some(identity) = identity {
        meta.insert(SUBMITTED_BY, identity);
    }
    fields.insert("meta", meta);
    Ok(())
}

/// Returns the `meta` of an agent's job. A plain job has no user, and a value that is no object is refused where it is
/// read.
fn meta_of_agents(fields: &RawObject) -> Option<RawObject> {
    let meta = fields.given("meta").map_or_else(|| Some(RawObject::new()), |meta| meta.parse().ok())?;
    let is_agents = meta.contains("agent") || fields.names().any(|name| name.starts_with("ext_agent_"));
    is_agents.then_some(meta)
}

/// Applies the principal to the request that a cron entry enqueues: `job_template`, or the members beside the entry's.
///
/// # Errors
/// As [`apply`].
pub(crate) fn apply_to_template(entry: &mut RawObject, principal: &Principal) -> Result<(), Failure> {
    let Some(template) = entry.given("job_template") else {
        return apply(entry, principal, MembersFrom::Request);
    };
    // A value that is no object is refused where it is read.
    let Ok(mut template) = template.parse::<RawObject>() else { return Ok(()) };
    apply(&mut template, principal, MembersFrom::Request)?;
    entry.insert("job_template", template);
    Ok(())
}

/// Checks that a principal may change when the stored request of a cron entry is enqueued.
///
/// # Errors
/// 403 when the request is for a user for whom the principal may not cause such work.
pub(crate) fn check_stored(
    template: &RawObject,
    principal: &Principal,
    kind: WorkKind,
) -> Result<(), Failure> {
    let user = meta_of_agents(template).and_then(|meta| meta.given("user")?.parse::<Value>().ok());
    work::check(principal, kind, user.as_ref().and_then(|user| user["id"].as_str()))
}

/// Refuses a cron entry that calls a model without a registered agent, where one is required. Refuses one whose parent is
/// the job of a user for whom the principal may not act.
///
/// # Errors
/// 403, and the error of the store.
pub(crate) async fn check_template(app: &App, entry: &RawObject, tenant: &Tenant) -> Result<(), Failure> {
    let template = entry.given("job_template").and_then(|template| template.parse::<RawObject>().ok());
    let fields = template.as_ref().unwrap_or(entry);
    let is_named = fields
        .given("meta")
        .and_then(|meta| meta.parse::<RawObject>().ok())
        .is_some_and(|meta| meta.contains("agent"));
    let is_agents = fields.names().any(|name| name.starts_with("ext_agent_"));
    if app.api.options.require_agent && is_agents && !is_named {
        return Err(unnamed().into());
    }
    match agent_fields::works_for(fields) {
        Some(parent) => {
            let scope = tenant.name().filter(|name| !name.is_empty());
            let parent = app.api.store.views.engagement_of_job(&parent, scope).await?;
            parent.map_or(Ok(()), |(engagement, _)| {
                work::check_user(&tenant.principal, WorkKind::Chosen, &engagement.user)
            })
        }
        None => Ok(()),
    }
}

/// Returns the error about a job that names no registered agent.
pub(super) fn unnamed() -> OjsError {
    let hint = "Name a registered agent in `meta.agent`, whose restrictions and reviews apply.";
    let message = "This server runs registered agents only ([agents] require_agent).";
    OjsError::new(403, "forbidden", message, hint).with("field", "meta.agent")
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::principal::{ANYONE, Role};

    fn principal(acts_for: &[&str]) -> Principal {
        Principal {
            name: "ann".to_owned(),
            key: None,
            tenant: Some("acme".to_owned()),
            roles: vec![Role::Submitter],
            acts_for: acts_for.iter().map(|name| (*name).to_owned()).collect(),
            email: Some("ann@corp.example".to_owned()),
            identity: Some("acme/ann".to_owned()),
        }
    }

    fn applied(job: &str, principal: &Principal) -> Result<String, u16> {
        let mut fields: RawObject = serde_json::from_str(job).unwrap();
        apply(&mut fields, principal, MembersFrom::Request).map_err(|failure| failure.0.status)?;
        Ok(fields.to_raw().as_str().to_owned())
    }

    #[test]
    fn a_job_is_for_the_principal_unless_it_may_act_for_the_named_user() {
        let (own, any) = (principal(&["ben"]), principal(&[ANYONE]));
        let agent = r#"{"meta":{"agent":"a","user":{"id":"ben"}}}"#;
        let marked =
            |rest: &str| format!(r#"{{"meta":{{"agent":"a"{rest},"turnstone_submitted_by":"acme/ann"}}}}"#);
        assert_eq!(applied(agent, &own), Ok(marked(r#","user":{"id":"ben"}"#)));
        let verified = r#","user":{"id":"ann","email":"ann@corp.example"}"#;
        assert_eq!(applied(r#"{"meta":{"agent":"a"}}"#, &own), Ok(marked(verified)));
        assert_eq!(applied(r#"{"meta":{"agent":"a","user":{"id":"ann"}}}"#, &own), Ok(marked(verified)));
        assert_eq!(applied(r#"{"meta":{"agent":"a"}}"#, &any), Ok(marked("")));
        assert_eq!(applied(r#"{"meta":{"agent":"a","user":{"id":"cid"}}}"#, &own), Err(403));
        assert!(applied(r#"{"meta":{"agent":"a","user":{"id":"cid"}}}"#, &any).is_ok());
    }

    #[test]
    fn an_email_is_verified_or_stated_by_who_acts_for_the_user() {
        let with = |id: &str, email: &str| {
            format!(r#"{{"meta":{{"agent":"a","user":{{"id":"{id}","email":"{email}"}}}}}}"#)
        };
        let (own, any) = (principal(&["ben", "ann"]), principal(&[ANYONE]));
        for (id, email, by, passes) in [
            ("ann", "ann@corp.example", &own, true),
            ("ann", "boss@corp.example", &own, false),
            ("ann", "", &own, false),
            ("ben", "ben@corp.example", &own, true),
            ("cid", "cid@corp.example", &own, false),
            ("ann", "boss@corp.example", &any, true),
            ("cid", "cid@corp.example", &any, true),
        ] {
            let applied = applied(&with(id, email), by);
            assert_eq!(applied.is_ok(), passes, "{id} {email}");
        }
    }

    #[test]
    fn a_plain_job_stays_as_it_was_sent() {
        for job in [r#"{"meta":{"user":{"id":"cid"}}}"#, r#"{"type":"a"}"#, r#"{"meta":5}"#] {
            assert_eq!(applied(job, &principal(&[])), Ok(job.to_owned()));
        }
    }

    #[test]
    fn a_forged_mark_is_replaced() {
        let sent = r#"{"meta":{"agent":"a","turnstone_submitted_by":"ben"}}"#;
        let kept = applied(sent, &principal(&[ANYONE])).unwrap();
        assert!(kept.contains(r#""turnstone_submitted_by":"acme/ann""#) && !kept.contains("ben"), "{kept}");
    }
}
