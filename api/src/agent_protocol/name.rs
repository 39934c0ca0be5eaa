//! What the client calls a request, and what it asked.

use serde_json::Value;
use turnstone_domain::{Job, JobId, RawJson, RawObject};

/// The member of a job's `meta` in which a request of the Agent Protocol keeps what is its own.
pub(super) const MEMBER: &str = "agent_protocol";

/// The id of the request: the client's, else the job's.
pub(super) fn of(job: &Job) -> String {
    within(&job.envelope.meta, &job.id)
}

/// The same, of a job of which only this is known.
pub(super) fn within(meta: &RawObject, job: &JobId) -> String {
    own(meta)["request_id"].as_str().unwrap_or(job.as_str()).to_owned()
}

/// What its client said beside the input, and `digest`, which tells other requests from it; null for other jobs.
pub(super) fn kept(job: &Job) -> Value {
    own(&job.envelope.meta)
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
