//! The client's name of a request, and its input.

use super::request_id;
use crate::names::Names;
use serde_json::Value;
use turnstone_domain::{Job, JobId, RawJson, RawObject};

/// The member of a job's `meta` for the fields of the Agent Protocol.
pub(super) const MEMBER: &str = "agent_protocol";

/// Returns the id of the request: the client's, else the job's.
pub(super) fn of(names: &Names, job: &Job) -> String {
    within(names, &job.envelope.meta, &job.id, job.tenant.as_deref())
}

/// Returns the same, from the fields of a job. A name is valid only for the job whose id it determines: forks copy the
/// `meta` of their origin, and any client may write one.
pub(super) fn within(names: &Names, meta: &RawObject, job: &JobId, tenant: Option<&str>) -> String {
    let agent = meta.given("agent").and_then(|agent| agent.parse::<String>().ok()).unwrap_or_default();
    let own = own(meta);
    let makes = |name: &&str| {
        // An operator may name a request in a tenant's run without naming the tenant.
        [tenant, None].into_iter().any(|tenant| names.makes(&request_id::of_name(&agent, tenant, name), job))
    };
    own["request_id"].as_str().filter(makes).unwrap_or(job.shown()).to_owned()
}

/// Returns the client's members beside the input, and the `digest` of the request; null for other jobs.
pub(super) fn kept(job: &Job) -> Value {
    own(&job.envelope.meta)
}

/// Returns true if this caller sent the request: another server by its name, or a client.
pub(super) fn is_of(job: &Job, peer: Option<&str>) -> bool {
    kept(job)["peer"].as_str() == peer
}

fn own(meta: &RawObject) -> Value {
    meta.given(MEMBER).and_then(|own| own.parse::<Value>().ok()).unwrap_or_default()
}

/// Returns the text that the user sent: the job's only argument, or all of them as JSON.
pub(super) fn input(job: &Job) -> String {
    let args = &job.envelope.args;
    match args.parse::<Vec<RawJson>>().ok().as_deref() {
        Some([only]) => only.parse::<String>().unwrap_or_else(|_| only.as_str().to_owned()),
        _ => args.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// AP-A5: a name belongs to the job whose id it determines. A fork of that job, and a job that only repeats the
    /// name, have their own ids.
    #[test]
    fn a_name_is_believed_of_the_job_that_it_makes() {
        let mut meta = RawObject::new();
        meta.insert("agent", "lead");
        meta.insert(MEMBER, json!({"request_id": "r"}));
        let names = Names::with("a secret");
        let made = names.id(&request_id::of_name("lead", Some("acme"), "r"));
        assert_eq!(within(&names, &meta, &made, Some("acme")), "r");
        for (job, tenant) in [(JobId("fork".into()), Some("acme")), (made.clone(), Some("other"))] {
            assert_eq!(within(&names, &meta, &job, tenant), job.as_str());
        }
        let operators = names.id(&request_id::of_name("lead", None, "r"));
        assert_eq!(within(&names, &meta, &operators, Some("acme")), "r");
    }
}
