//! What the client calls a request, and what it asked.

use super::request_id;
use crate::names::Names;
use serde_json::Value;
use turnstone_domain::{Job, JobId, RawJson, RawObject};

/// The member of a job's `meta` in which a request of the Agent Protocol keeps what is its own.
pub(super) const MEMBER: &str = "agent_protocol";

/// The id of the request: the client's, else the job's.
pub(super) fn of(names: &Names, job: &Job) -> String {
    within(names, &job.envelope.meta, &job.id, job.tenant.as_deref())
}

/// The same, of a job of which only this is known. A name is believed only of the job that it makes: forks have the `meta` of
/// the job that they come from, and anybody may write one.
pub(super) fn within(names: &Names, meta: &RawObject, job: &JobId, tenant: Option<&str>) -> String {
    let agent = meta.given("agent").and_then(|agent| agent.parse::<String>().ok()).unwrap_or_default();
    let own = own(meta);
    let makes = |name: &&str| {
        // Who operates the server may name a request in a tenant's run without naming the tenant.
        [tenant, None].into_iter().any(|tenant| names.makes(&request_id::of_name(&agent, tenant, name), job))
    };
    own["request_id"].as_str().filter(makes).unwrap_or(job.as_str()).to_owned()
}

/// What its client said beside the input, and `digest`, which tells other requests from it; null for other jobs.
pub(super) fn kept(job: &Job) -> Value {
    own(&job.envelope.meta)
}

/// Whether this caller sent the request: another server by its name, or a client.
pub(super) fn is_of(job: &Job, peer: Option<&str>) -> bool {
    kept(job)["peer"].as_str() == peer
}

fn own(meta: &RawObject) -> Value {
    meta.given(MEMBER).and_then(|own| own.parse::<Value>().ok()).unwrap_or_default()
}

/// The text that the user sent: the job's only argument, or all of them as JSON.
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

    /// AP-A5: a name stands for the job that it makes. A fork of it, and what only says so, are called by their own ids.
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
