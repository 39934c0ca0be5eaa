//! The members of a control request, and the reasons of a refusal.

use crate::api::Shared;
use crate::reply::Failure;
use crate::request::Tenant;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use turnstone_ojs::OjsError;
use turnstone_store::{Refusal, Target};

/// Reads a text of at most this many bytes.
pub(super) fn short<'de, D: Deserializer<'de>, const MOST: usize>(
    member: D,
) -> Result<Option<String>, D::Error> {
    match Option::<String>::deserialize(member)? {
        Some(text) if text.len() > MOST => Err(Error::custom(format!("must have at most {MOST} bytes"))),
        text => Ok(text),
    }
}

/// Reads a text of at most 255 bytes that is required and not empty.
pub(super) fn name<'de, D: Deserializer<'de>>(member: D) -> Result<String, D::Error> {
    let name = short::<_, 255>(member)?.filter(|name| !name.is_empty());
    name.ok_or_else(|| Error::custom("is missing or empty"))
}

/// Returns the target job, as of now.
///
/// # Errors
/// 409 when several tenants have a job with this id; the error of the store.
pub(super) async fn target(app: &Shared, job: &str, tenant: Tenant) -> Result<Target, Failure> {
    let (job, by) = (tenant.job(app, job).await?, tenant.principal.identity.clone());
    Ok(Target { job, tenant: tenant.into_name(), by, at: app.api.clock.now() })
}

/// Returns why the store refused it, for the client.
pub(super) fn refused(job: &str, refusal: &Refusal) -> Failure {
    let error = match refusal {
        Refusal::NoJob => OjsError::not_found("job", job),
        Refusal::Ended(state) => {
            OjsError::conflict(format!("Job {job} is {state} already.")).with("state", state.as_str())
        }
        Refusal::SeveralInputs => OjsError::conflict(format!(
            "The engagement of job {job} had several inputs; only one with a single input can be forked or merged."
        )),
        Refusal::NoTurn { newest } => OjsError::new(
            422,
            "no_such_turn",
            format!("Job {job} has not come as far as this turn; it stands at turn {newest}."),
            "Leave at_turn out to fork where the job stands.",
        )
        .with("newest_turn", *newest),
        Refusal::NameTaken(name) => {
            OjsError::conflict(format!("Another branch of job {job} is called `{name}` already."))
                .with("branch_name", name.as_str())
        }
        Refusal::NoBranch(name) => OjsError::not_found("branch", name),
        Refusal::OtherRoot(name) => {
            OjsError::conflict(format!("`{name}` is not a branch of what job {job} comes from."))
                .with("branch", name.as_str())
        }
        Refusal::NoCall => {
            let hint = "GET /engagements/{id}/tool-calls lists the calls of a job's engagement.";
            OjsError::new(404, "not_found", format!("Job {job} has made no call with this id."), hint)
        }
        Refusal::TooOften { most } => {
            let message =
                format!("This call may be made again {most} times, and has been asked for as often.");
            OjsError::conflict(message).with("max_attempts", *most)
        }
        Refusal::NotIdempotent => OjsError::new(
            409,
            "conflict",
            "This call may have had its effect, and its tool is not idempotent: to make it again could repeat the effect.",
            "Send \"approved\": true when it is safe, or answer the review about its unknown outcome.",
        ),
        Refusal::NotMade => OjsError::conflict(
            "This call has no outcome yet: it is being made, waits for a review, or is to be made again already.",
        ),
        Refusal::NoAlternate(Some(name)) => OjsError::validation(
            "ext_agent_v2.tool_retry.alternate_provider",
            format!("The alternate_provider `{name}` is not a tool of the job's agent."),
        ),
        Refusal::NoAlternate(None) => OjsError::validation(
            "use_alternate",
            "The job names no ext_agent_v2.tool_retry.alternate_provider to use.",
        ),
        Refusal::NotPaused => OjsError::new(
            422,
            "not_paused",
            format!("Job {job} is not paused, so it cannot be resumed."),
            "POST …/pause pauses a job; a job that is not paused continues by itself.",
        ),
    };
    error.into()
}
