//! One action on all jobs of a filter: the request and the response that these endpoints share.

use crate::api::App;
use crate::audit::Operator;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use turnstone_domain::{JobState, RawObject, Timestamp};
use turnstone_ojs::request::texts;
use turnstone_ojs::{Fields, OjsError};
use turnstone_store::{Bulk, BulkOutcome, JobAction, JobFilter};
use utoipa::ToSchema;

/// The most jobs of one request, which bounds its duration. `remaining` counts the rest.
pub(super) const MOST: usize = 10_000;
/// The most refusals that are listed.
const LISTED: usize = 100;

/// The action's jobs and conditions. An unknown member is refused: a misspelt condition would act on every job.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"filter": {"queue": "mail", "type": "email.send"}, "confirm": true}))]
pub(crate) struct BulkRequest {
    /// The jobs; without members, every job that the action applies to.
    filter: Option<BulkFilter>,
    /// Must be true, unless it is a dry run.
    confirm: Option<bool>,
    /// True for a dry run: the response contains the result, and nothing changes.
    dry_run: Option<bool>,
}

/// The jobs that match every member.
#[derive(Deserialize, ToSchema)]
pub(crate) struct BulkFilter {
    #[serde(default, deserialize_with = "text")]
    state: Option<String>,
    #[serde(default, deserialize_with = "texts")]
    states: Option<Vec<String>>,
    #[serde(default, deserialize_with = "text")]
    queue: Option<String>,
    #[serde(rename = "type", default, deserialize_with = "text")]
    job_type: Option<String>,
    /// Accepted then or later, RFC 3339.
    #[serde(default, deserialize_with = "time")]
    #[schema(value_type = Option<String>)]
    since: Option<Timestamp>,
    /// Accepted before then, RFC 3339.
    #[serde(default, deserialize_with = "time")]
    #[schema(value_type = Option<String>)]
    until: Option<Timestamp>,
    /// With this tag.
    #[serde(default, deserialize_with = "text")]
    tag: Option<String>,
    /// Of this agent; not for dead letters.
    #[serde(default, deserialize_with = "text")]
    agent: Option<String>,
    /// Whose last error has this code; not for dead letters.
    #[serde(default, deserialize_with = "text")]
    error_code: Option<String>,
}

/// The outcome.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct BulkReply {
    /// retry, cancel or delete.
    action: String,
    dry_run: bool,
    /// Jobs that the filter found.
    pub matched: u64,
    /// Jobs that were changed.
    pub succeeded: usize,
    /// Jobs that were in another state when their turn came.
    pub failed: usize,
    /// Jobs that were found and not reached; the same request continues with them.
    pub remaining: u64,
    /// The jobs that were changed, or would be.
    pub ids: Vec<String>,
    /// The first hundred refusals.
    pub errors: Vec<BulkRefusal>,
}

/// A job that was not changed.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct BulkRefusal {
    /// The job.
    pub id: String,
    /// The stable code of the reason.
    pub code: String,
    /// The reason.
    pub message: String,
}

/// Reads the request and applies it.
pub(crate) async fn run(
    app: &App,
    (action, dead_letters): (JobAction, bool),
    tenant: Tenant,
    operator: &Operator,
    body: &[u8],
) -> Answer {
    let fields = Fields::read_if_any(body)?;
    refuse_unknown(&fields.object("filter")?.unwrap_or_default(), dead_letters)?;
    let BulkRequest { filter, confirm, dry_run } = fields.typed()?;
    let dry_run = dry_run.unwrap_or_default();
    if confirm != Some(true) && !dry_run {
        let why = "must be true: this changes every job that the filter finds; `dry_run` only looks for them";
        return Err(OjsError::invalid_request("confirm", why).into());
    }
    let (states, filter) = filter.map(BulkFilter::read).transpose()?.unwrap_or_default();
    let filter = JobFilter { tenant: tenant.into_name(), ..filter };
    let at = app.api.clock.now();
    let bulk = Bulk { action, dead_letters, states, filter, most: MOST, dry_run, at };
    let what = in_words(&bulk);
    let outcome = app.api.store.operate.bulk(bulk).await?;
    if !dry_run {
        operator.did(
            &format!("job.{}", action.as_str()),
            &what,
            &format!("{} of {}", outcome.done.len(), outcome.matched),
        );
    }
    Ok(reply::ok(&answer(action, dry_run, outcome)))
}

/// Returns the filter in words, for the operators' log.
fn in_words(bulk: &Bulk) -> String {
    let states: Vec<&str> = bulk.states.iter().map(|state| state.as_str()).collect();
    let kind = if bulk.dead_letters { "dead letters" } else { "jobs" };
    let filter = &bulk.filter;
    let parts = [
        (!states.is_empty()).then(|| format!("that are {}", states.join(" or "))),
        filter.queue.as_ref().map(|queue| format!("in queue {queue}")),
        filter.job_type.as_ref().map(|job_type| format!("of type {job_type}")),
        filter.tenant.as_ref().map(|tenant| format!("of tenant {tenant}")),
        filter.since.map(|at| format!("since {}", at.to_rfc3339())),
        filter.until.map(|at| format!("until {}", at.to_rfc3339())),
        filter.tag.as_ref().map(|tag| format!("with tag {tag}")),
        filter.agent.as_ref().map(|agent| format!("of agent {agent}")),
        filter.error_code.as_ref().map(|code| format!("with error {code}")),
    ];
    let said: Vec<String> = parts.into_iter().flatten().collect();
    if said.is_empty() { format!("all {kind}") } else { format!("{kind} {}", said.join(" ")) }
}

fn answer(action: JobAction, dry_run: bool, outcome: BulkOutcome) -> BulkReply {
    let BulkOutcome { matched, done, refused } = outcome;
    let (succeeded, failed) = (done.len(), refused.len());
    let reached = u64::try_from(succeeded + failed).unwrap_or(u64::MAX);
    let reported = |(id, state): (String, JobState)| {
        let message = format!("It is {state}; in this state it cannot be done.");
        BulkRefusal { id, code: "conflict".to_owned(), message }
    };
    BulkReply {
        action: action.as_str().to_owned(),
        dry_run,
        matched,
        succeeded: if dry_run { 0 } else { succeeded },
        failed,
        remaining: matched.saturating_sub(reached),
        ids: done.into_iter().map(|id| id.to_string()).collect(),
        errors: refused
            .into_iter()
            .take(LISTED)
            .map(|(id, state)| reported((id.to_string(), state)))
            .collect(),
    }
}

impl BulkFilter {
    fn read(self) -> Result<(Vec<JobState>, JobFilter), OjsError> {
        if self.states.as_ref().is_some_and(Vec::is_empty) {
            return Err(OjsError::invalid_request("filter.states", "must not be empty; leave it out"));
        }
        let words = self.states.iter().flatten().chain(&self.state).map(String::as_str);
        let states = states(words, "filter.states")?;
        let Self { queue, job_type, since, until, tag, agent, error_code, .. } = self;
        let filter =
            JobFilter { queue, job_type, since, until, tag, agent, error_code, ..JobFilter::default() };
        Ok((states, filter))
    }
}

/// Reads a text. An empty one is refused, because it would not filter anything.
fn text<'de, D: Deserializer<'de>>(member: D) -> Result<Option<String>, D::Error> {
    match Option::<String>::deserialize(member)? {
        Some(text) if text.is_empty() => Err(Error::custom("must not be empty; leave it out")),
        text => Ok(text),
    }
}

fn time<'de, D: Deserializer<'de>>(member: D) -> Result<Option<Timestamp>, D::Error> {
    let wrong = || Error::custom("must be a time with a zone, such as 2026-01-31T12:00:00Z");
    text(member)?.map(|at| Timestamp::parse_rfc3339(&at).ok_or_else(wrong)).transpose()
}

/// Refuses an unknown member of a filter: ignoring it would reach more jobs than were meant.
fn refuse_unknown(filter: &RawObject, dead_letters: bool) -> Result<(), OjsError> {
    let known: &[&str] = if dead_letters {
        &["queue", "type", "since", "until", "tag"]
    } else {
        &["state", "states", "queue", "type", "since", "until", "tag", "agent", "error_code"]
    };
    match filter.names().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let shown: String = name.chars().take(60).collect();
            let why = format!("has no `{shown}`; it may have {}", known.join(", "));
            Err(OjsError::invalid_request("filter", why))
        }
    }
}

/// States, each once, in the order in which they were named.
pub(super) fn states<'a>(
    words: impl Iterator<Item = &'a str>,
    field: &str,
) -> Result<Vec<JobState>, OjsError> {
    let mut states = Vec::new();
    for word in words {
        let Some(state) = JobState::parse(word) else {
            let all = JobState::ALL.map(JobState::as_str).join(", ");
            return Err(OjsError::invalid_request(field, format!("may have {all}")));
        };
        if !states.contains(&state) {
            states.push(state);
        }
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> Result<(Vec<JobState>, JobFilter), OjsError> {
        let fields = Fields::read(text.as_bytes()).unwrap();
        refuse_unknown(&fields.0, false)?;
        fields.typed().and_then(BulkFilter::read)
    }

    #[test]
    fn a_filter_is_read_strictly() {
        let (states, found) =
            filter(r#"{"state":"active","states":["available","active"],"queue":"q","type":"a.b"}"#).unwrap();
        assert_eq!(states, [JobState::Available, JobState::Active]);
        assert_eq!((found.queue.as_deref(), found.job_type.as_deref()), (Some("q"), Some("a.b")));
        for wrong in [
            r#"{"queues":"q"}"#,
            r#"{"state":"done"}"#,
            r#"{"since":"yesterday"}"#,
            r#"{"queue":7}"#,
            r#"{"queue":""}"#,
            r#"{"states":[]}"#,
            r#"{"until":""}"#,
            r#"{"tag":""}"#,
        ] {
            assert_eq!(filter(wrong).unwrap_err().status, 400, "{wrong}");
        }
    }

    #[test]
    fn dead_letters_have_no_other_state() {
        let sent = Fields::read(br#"{"state":"active"}"#).unwrap();
        assert_eq!(refuse_unknown(&sent.0, true).unwrap_err().status, 400);
    }
}
