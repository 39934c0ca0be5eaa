//! The submitter of an agent's job. The user that a job names counts only within what its principal may act for. The
//! principal is kept in the job's `meta`, so that it cannot approve what it submitted.

use crate::api::App;
use crate::reply::Failure;
use serde_json::{Value, json};
use turnstone_domain::RawObject;
use turnstone_domain::principal::{Principal, SUBMITTED_BY};
use turnstone_ojs::OjsError;

/// Applies the principal to the members of a job.
///
/// # Errors
/// 403 when the job names a user for whom the principal may not act.
pub(super) fn apply(fields: &mut RawObject, principal: &Principal) -> Result<(), Failure> {
    let identity = principal.identity.as_deref();
    if identity.is_none() && principal.acts_for_anyone() {
        return Ok(());
    }
    let meta = fields.given("meta").map_or_else(|| Some(RawObject::new()), |meta| meta.parse().ok());
    // A value that is no object is refused where it is read.
    let Some(mut meta) = meta else { return Ok(()) };
    if !meta.contains("agent") && !fields.names().any(|name| name.starts_with("ext_agent_")) {
        return Ok(());
    }
    let user = meta.given("user").and_then(|user| user.parse::<Value>().ok());
    match user.as_ref().and_then(|user| user["id"].as_str()) {
        Some(id) => check_user(principal, id)?,
        None if user.is_none() && !principal.acts_for_anyone() => {
            meta.insert("user", json!({"id": principal.name}));
        }
        None => {}
    }
    if let Some(identity) = identity {
        meta.insert(SUBMITTED_BY, identity);
    }
    fields.insert("meta", meta);
    Ok(())
}

/// Applies the principal to the request that a cron entry enqueues: `job_template`, or the members beside the entry's.
///
/// # Errors
/// As [`apply`].
pub(crate) fn apply_to_template(entry: &mut RawObject, principal: &Principal) -> Result<(), Failure> {
    let Some(template) = entry.given("job_template") else { return apply(entry, principal) };
    // A value that is no object is refused where it is read.
    let Ok(mut template) = template.parse::<RawObject>() else { return Ok(()) };
    apply(&mut template, principal)?;
    entry.insert("job_template", template);
    Ok(())
}

/// Refuses a cron entry that calls a model without a registered agent, where one is required.
///
/// # Errors
/// 403.
pub(crate) fn check_template(app: &App, entry: &RawObject) -> Result<(), Failure> {
    let template = entry.given("job_template").and_then(|template| template.parse::<RawObject>().ok());
    let fields = template.as_ref().unwrap_or(entry);
    let is_named = fields
        .given("meta")
        .and_then(|meta| meta.parse::<RawObject>().ok())
        .is_some_and(|meta| meta.contains("agent"));
    let is_agents = fields.names().any(|name| name.starts_with("ext_agent_"));
    if app.api.options.require_agent && is_agents && !is_named { Err(unnamed().into()) } else { Ok(()) }
}

/// Returns the error about a job that names no registered agent.
pub(super) fn unnamed() -> OjsError {
    let hint = "Name a registered agent in `meta.agent`, whose restrictions and reviews apply.";
    let message = "This server runs registered agents only ([agents] require_agent).";
    OjsError::new(403, "forbidden", message, hint).with("field", "meta.agent")
}

/// Checks that a principal may act for a user.
///
/// # Errors
/// 403.
pub(crate) fn check_user(principal: &Principal, id: &str) -> Result<(), Failure> {
    if principal.may_act_for(id) {
        return Ok(());
    }
    let message = format!("{} may not act for user {id}.", principal.name);
    let hint = "Leave the user out, or use a key that acts for this user: `turnstone key create --acts-for`.";
    Err(OjsError::new(403, "forbidden", message, hint).with("user", id).into())
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
            identity: Some("acme/ann".to_owned()),
        }
    }

    fn applied(job: &str, principal: &Principal) -> Result<String, u16> {
        let mut fields: RawObject = serde_json::from_str(job).unwrap();
        apply(&mut fields, principal).map_err(|failure| failure.0.status)?;
        Ok(fields.to_raw().as_str().to_owned())
    }

    #[test]
    fn a_job_is_for_the_principal_unless_it_may_act_for_the_named_user() {
        let (own, any) = (principal(&["ben"]), principal(&[ANYONE]));
        let agent = r#"{"meta":{"agent":"a","user":{"id":"ben"}}}"#;
        let marked =
            |rest: &str| format!(r#"{{"meta":{{"agent":"a"{rest},"turnstone_submitted_by":"acme/ann"}}}}"#);
        assert_eq!(applied(agent, &own), Ok(marked(r#","user":{"id":"ben"}"#)));
        assert_eq!(applied(r#"{"meta":{"agent":"a"}}"#, &own), Ok(marked(r#","user":{"id":"ann"}"#)));
        assert_eq!(applied(r#"{"meta":{"agent":"a"}}"#, &any), Ok(marked("")));
        assert_eq!(applied(r#"{"meta":{"agent":"a","user":{"id":"cid"}}}"#, &own), Err(403));
        assert!(applied(r#"{"meta":{"agent":"a","user":{"id":"cid"}}}"#, &any).is_ok());
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
