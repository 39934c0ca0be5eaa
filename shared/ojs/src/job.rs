//! A job as clients read it (OJS core §3, OJS HTTP binding §5.2).

use crate::{OpenValue, SPEC_VERSION, when};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use turnstone_domain::budget::Amount;
use turnstone_domain::error::{FailureKind, ProviderWait};
use turnstone_domain::job::{AgentJob, FailedAttempt, SavedState, ToolResults};
use turnstone_domain::retry::{OnExhaustion, RetryPolicy};
use turnstone_domain::turn_write::Position;
use turnstone_domain::{Job, JobState, NewJob, RawJson, RawObject, Timestamp};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema as _, ToSchema};

/// Returns the job right after it was stored, so that the answer needs no second read of the store.
#[must_use]
pub fn accepted(job: NewJob, state: JobState) -> Job {
    let agent = job.engagement.map(|engagement| AgentJob {
        engagement_id: engagement.id,
        position: Position::default(),
        tokens_used: 0,
        cost: 0,
        tool_results: Some(ToolResults { newest: Vec::new(), whole: true }),
    });
    Job {
        id: job.id,
        job_type: job.job_type,
        queue: job.queue,
        state,
        priority: job.priority,
        attempt: 0,
        failures: 0,
        created_at: job.created_at,
        run_at: job.run_at,
        started_at: None,
        ended_at: None,
        expires_at: job.expires_at,
        timeout_ms: job.timeout_ms,
        worker_id: None,
        tenant: job.terms.tenant,
        workflow_id: None,
        parent_results: job.terms.parent_results,
        dead_letter: job.retry.on_exhaustion == OnExhaustion::DeadLetter,
        held: false,
        saved: None,
        retry: job.retry,
        retry_delay_ms: None,
        envelope: job.envelope,
        result: None,
        errors: Vec::new(),
        agent,
        waits_for: None,
        damaged: None,
    }
}

/// A job as clients read it. A field that has no value is absent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Job)]
pub struct JobBody {
    /// The version of OJS.
    #[schema(example = "1.0")]
    pub specversion: String,
    /// UUIDv7.
    pub id: String,
    /// Dot-separated.
    #[serde(rename = "type")]
    #[schema(example = "email.send")]
    pub job_type: String,
    /// Its queue.
    #[schema(example = "default")]
    pub queue: String,
    /// scheduled, available, pending, active, completed, retryable, cancelled or discarded.
    #[schema(value_type = String)]
    pub state: OpenValue<JobState>,
    /// The arguments, as they were sent.
    #[schema(value_type = Vec<Value>)]
    pub args: RawJson,
    /// The client's notes, as they were sent.
    #[schema(value_type = Map<String, Value>)]
    pub meta: RawObject,
    /// -100 to 100; higher goes first.
    pub priority: i64,
    /// How often it was claimed.
    pub attempt: i64,
    /// The most attempts.
    pub max_attempts: i64,
    /// The options, as they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Map<String, Value>>)]
    pub options: Option<RawObject>,
    /// The retry policy with its defaults, if one was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Map<String, Value>>)]
    pub retry: Option<OpenValue<RetryPolicy>>,
    /// The option of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub tags: Option<RawJson>,
    /// The option of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Map<String, Value>>)]
    pub unique: Option<RawJson>,
    /// The option of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Map<String, Value>>)]
    pub rate_limit: Option<RawJson>,
    /// The longest duration of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// The earliest time at which it may run; RFC 3339, as every time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<String>,
    /// When it is discarded, if it has not ended before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it was accepted.
    pub created_at: String,
    /// The same.
    pub enqueued_at: String,
    /// When it was claimed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it was completed, or its last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// When it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_at: Option<String>,
    /// When it was discarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discarded_at: Option<String>,
    /// The worker that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The token of its lease. Only the answer to a fetch has it: reports of the worker with it concern this attempt alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ext_lease_token: Option<String>,
    /// The workflow of which it is a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The results of the jobs before it in its workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub parent_results: Option<RawJson>,
    /// The state that its worker saved last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<JobCheckpoint>,
    /// Its result, as the worker sent it.
    #[serde(default, deserialize_with = "crate::request::sent", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub result: Option<RawJson>,
    /// Why its latest attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureRecord>,
    /// Its failures, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FailureRecord>,
    /// The delay after the last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_delay_ms: Option<i64>,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_retry_at: Option<String>,
    /// While it is parked: the data of the event that parked it, such as `review_id`, `budget` or `children`. While it
    /// waits for its next attempt because its model's provider could not be reached: `kind` is `provider`, with `provider`,
    /// `problem`, `address`, `attempt`, `max_attempts` and `next_retry_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Map<String, Value>>)]
    pub waits_for: Option<Value>,
    /// In lists: why this job cannot be read whole. Unreadable members are left out or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
    /// The engagement of an agent's job.
    #[serde(rename = "ext_agent_engagement_id", skip_serializing_if = "Option::is_none")]
    pub engagement_id: Option<String>,
    /// Tokens that the job used.
    #[serde(rename = "ext_agent_tokens_used", skip_serializing_if = "Option::is_none")]
    pub tokens_used: Option<i64>,
    /// Their cost.
    #[serde(rename = "ext_agent_cost", skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// The model that answered.
    #[serde(rename = "ext_agent_model_used", skip_serializing_if = "Option::is_none")]
    pub model_used: Option<String>,
    /// The calls of tools with their outcomes: the newest, if there are too many.
    #[serde(rename = "ext_agent_tool_results", skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<Vec<Value>>,
    /// The address of the calls before these.
    #[serde(rename = "ext_agent_tool_results_before", skip_serializing_if = "Option::is_none")]
    pub tool_results_before: Option<String>,
    /// Every further member that the client sent.
    #[serde(flatten, deserialize_with = "extra")]
    #[schema(ignore)]
    pub extra: RawObject,
}

/// The names of the members above. A client's member of such a name is not shown.
static OWN: LazyLock<BTreeSet<String>> = LazyLock::new(|| match JobBody::schema() {
    RefOr::T(Schema::Object(object)) => object.properties.into_iter().map(|(name, _)| name).collect(),
    _ => BTreeSet::new(),
});

fn extra<'de, D: Deserializer<'de>>(members: D) -> Result<RawObject, D::Error> {
    Map::deserialize(members).map(|members| RawObject::of(&members))
}

/// A saved state of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobCheckpoint {
    /// As the worker sent it.
    #[schema(value_type = Value)]
    pub state: RawJson,
    /// 1 for the first save.
    pub sequence: i64,
    /// When it was saved.
    pub created_at: String,
}

/// A failed attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FailureRecord {
    /// Stable; programs decide by it.
    pub code: String,
    /// The class of the error, which `non_retryable_errors` may list.
    #[serde(rename = "type")]
    pub error_type: String,
    /// In words.
    pub message: String,
    /// False if a further attempt cannot help.
    pub retryable: bool,
    /// Facts for programs.
    pub details: Map<String, Value>,
    /// The attempt that failed.
    pub attempt: i64,
    /// When it failed.
    pub occurred_at: String,
    /// The same.
    pub timestamp: String,
}

impl From<&FailedAttempt> for FailureRecord {
    fn from(failed: &FailedAttempt) -> Self {
        let mut details = failed.error.details.clone();
        if !matches!(failed.error.kind, FailureKind::Reported | FailureKind::Silence) {
            for (key, fact) in failed.error.facts() {
                details.entry(key).or_insert(fact);
            }
        }
        let at = failed.at.to_rfc3339();
        Self {
            code: failed.error.code().to_owned(),
            error_type: failed.error.error_type().to_owned(),
            message: failed.error.message.clone(),
            retryable: failed.error.retryable,
            details: *details,
            attempt: failed.attempt,
            occurred_at: at.clone(),
            timestamp: at,
        }
    }
}

/// A job, and the same in `job` for clients that expect a wrapper.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct JobReply {
    /// The job.
    pub job: JobBody,
    #[serde(flatten)]
    flat: JobBody,
}

impl JobReply {
    /// Returns the reply without these members of the client, which the answer has itself: a name occurs once in an object.
    #[must_use]
    pub fn beside(mut self, names: &[&str]) -> Self {
        names.iter().for_each(|name| drop(self.flat.extra.remove(name)));
        self
    }
}

impl From<&Job> for JobReply {
    fn from(job: &Job) -> Self {
        let mut flat = JobBody::from(job);
        let job = flat.clone();
        flat.extra.remove("job");
        Self { job, flat }
    }
}

impl JobCheckpoint {
    /// Returns the state that a job's worker saved; `None` when it is no JSON.
    fn of(saved: &SavedState) -> Option<Self> {
        let state = RawJson::from_text(saved.state.clone()).ok()?;
        Some(Self { state, sequence: saved.sequence, created_at: saved.at.to_rfc3339() })
    }
}

impl From<&Job> for JobBody {
    fn from(job: &Job) -> Self {
        let options = &job.envelope.options;
        let option = |name: &str| options.given(name).cloned();
        let states_retry = options.contains("retry") || options.contains("retry_policy");
        let ended = job.ended_at.map(Timestamp::to_rfc3339);
        let ended_as = |state| ended.clone().filter(|_| job.state == state);
        let failed_at_last = job.state == JobState::Discarded
            && job.ended_at.is_some_and(|ended_at| !has_expired(job, ended_at));
        let results = job.parent_results.as_ref();
        let results = results.and_then(|all| RawJson::from_text(format!("[{}]", all.join(","))).ok());
        let errors: Vec<FailureRecord> = job.errors.iter().map(FailureRecord::from).collect();
        let created_at = job.created_at.to_rfc3339();
        let retryable = job.state == JobState::Retryable;
        let agent = job.agent.as_ref();
        let has_ended = job.state.is_terminal();
        let counted = agent.filter(|agent| has_ended || agent.tokens_used > 0);
        let calls = agent.and_then(|agent| Some((agent, agent.tool_results.as_ref()?)));
        let clients = |(name, value): (&str, &RawJson)| {
            (!OWN.contains(name)).then(|| (name.to_owned().into(), value.clone()))
        };
        Self {
            specversion: SPEC_VERSION.to_owned(),
            id: job.id.to_string(),
            job_type: job.job_type.clone(),
            queue: job.queue.clone(),
            state: job.state.into(),
            args: job.envelope.args.clone(),
            meta: job.envelope.meta.clone(),
            priority: job.priority,
            attempt: job.attempt,
            max_attempts: job.retry.max_attempts.into(),
            retry: states_retry.then(|| job.retry.shown().into()),
            tags: option("tags"),
            unique: option("unique"),
            rate_limit: option("rate_limit"),
            options: Some(options.clone()).filter(|options| !options.is_empty()),
            timeout_ms: job.timeout_ms,
            scheduled_at: scheduled_at(job),
            expires_at: sent_time(job, "expires_at").or_else(|| job.expires_at.map(Timestamp::to_rfc3339)),
            enqueued_at: created_at.clone(),
            created_at,
            started_at: job.started_at.map(Timestamp::to_rfc3339),
            completed_at: ended_as(JobState::Completed).or(ended.clone().filter(|_| failed_at_last)),
            cancelled_at: ended_as(JobState::Cancelled),
            discarded_at: ended_as(JobState::Discarded),
            worker_id: job.worker_id.clone(),
            ext_lease_token: None,
            workflow_id: job.workflow_id.clone(),
            parent_results: results,
            checkpoint: job.saved.as_ref().and_then(JobCheckpoint::of),
            result: job.result.clone(),
            error: errors.last().filter(|_| job.state != JobState::Completed).cloned(),
            errors,
            retry_delay_ms: job.retry_delay_ms,
            next_retry_at: retryable.then(|| job.run_at.to_rfc3339()),
            waits_for: job.waits_for.clone().or_else(|| serde_json::to_value(ProviderWait::of(job)?).ok()),
            damaged: job.damaged.clone(),
            engagement_id: agent.map(|agent| agent.engagement_id.to_string()),
            tokens_used: counted.map(|agent| agent.tokens_used),
            cost: counted.filter(|agent| agent.cost > 0).map(|agent| Amount(agent.cost).to_string()),
            model_used: agent.and_then(|agent| agent.position.model_used.clone()),
            tool_results: calls
                .filter(|(_, calls)| has_ended || !calls.newest.is_empty())
                .map(|(_, calls)| calls.newest.clone()),
            tool_results_before: calls
                .filter(|(_, calls)| !calls.whole)
                .map(|(agent, _)| format!("/engagements/{}/tool-calls", agent.engagement_id)),
            extra: job.envelope.extra.iter().filter_map(clients).collect(),
        }
    }
}

/// Returns a time of the options: an absolute one in the client's own spelling.
fn sent_time(job: &Job, name: &str) -> Option<String> {
    let text = job.envelope.options.get(name)?.parse::<String>().ok()?;
    when::shown(&text, job.created_at)
}

fn scheduled_at(job: &Job) -> Option<String> {
    let sent = sent_time(job, "scheduled_at").or_else(|| sent_time(job, "delay_until"));
    let moved = |at: &String| Timestamp::parse_rfc3339(at).is_none_or(|at| at != job.run_at);
    if job.state == JobState::Scheduled && sent.as_ref().is_none_or(moved) {
        // A limit, or the job that it replaced, changed the client's time.
        return Some(job.run_at.to_rfc3339());
    }
    sent
}

/// Returns true if the job was discarded because its `expires_at` passed, not because its last attempt failed.
fn has_expired(job: &Job, ended_at: Timestamp) -> bool {
    match job.errors.last() {
        Some(last) if last.error.kind == FailureKind::Expired => true,
        Some(last) if last.at >= ended_at => false,
        _ => job.expires_at.is_some_and(|at| at <= ended_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnstone_domain::job::Envelope;
    use turnstone_domain::{EngagementId, JobError, Terms};

    fn job_to_json(job: &Job) -> Value {
        serde_json::to_value(JobBody::from(job)).unwrap()
    }

    fn raw(object: &Value) -> RawObject {
        RawObject::of(object.as_object().unwrap())
    }

    fn job() -> Job {
        let options =
            json!({"expires_at": "2099-12-31T23:59:59Z", "delay_until": "+PT5S", "retry": {}, "tags": ["x"]});
        accepted(
            NewJob {
                id: "0190a7b2-0000-7000-8000-000000000001".into(),
                job_type: "a.b".into(),
                queue: "default".into(),
                priority: 0,
                run_at: Timestamp(5000),
                expires_at: Some(Timestamp(4_102_444_799_000)),
                timeout_ms: None,
                retry: RetryPolicy::default(),
                envelope: Envelope { options: raw(&options), ..Envelope::default() },
                engagement: None,
                terms: Terms::default(),
                created_at: Timestamp(0),
            },
            JobState::Scheduled,
        )
    }

    fn failed(at: i64) -> FailedAttempt {
        FailedAttempt {
            attempt: 1,
            error: JobError::new(FailureKind::TokenBudget, "spent").with("limit", 5),
            at: Timestamp(at),
        }
    }

    #[test]
    fn a_new_job_shows_what_was_sent_and_nothing_that_has_not_happened() {
        let shown = job_to_json(&job());
        assert_eq!(shown["meta"], json!({}));
        assert_eq!(shown["expires_at"], "2099-12-31T23:59:59Z");
        assert_eq!(shown["scheduled_at"], "1970-01-01T00:00:05.000Z");
        assert_eq!((&shown["tags"], &shown["retry"]["max_attempts"]), (&json!(["x"]), &json!(3)));
        for absent in
            ["started_at", "completed_at", "error", "errors", "result", "worker_id", "next_retry_at"]
        {
            assert_eq!(shown.get(absent), None, "{absent}");
        }
    }

    #[test]
    fn each_end_has_its_own_time() {
        let ended = |state, errors| {
            let job = Job { state, errors, ended_at: Some(Timestamp(9000)), ..job() };
            let shown = job_to_json(&job);
            ["completed_at", "cancelled_at", "discarded_at"].map(|key| shown.get(key).is_some())
        };
        assert_eq!(ended(JobState::Completed, vec![]), [true, false, false]);
        assert_eq!(ended(JobState::Cancelled, vec![]), [false, true, false]);
        assert_eq!(ended(JobState::Discarded, vec![failed(9000)]), [true, false, true]);
        let expired = |errors| {
            let job = Job {
                state: JobState::Discarded,
                errors,
                ended_at: Some(Timestamp(9000)),
                expires_at: Some(Timestamp(8000)),
                ..job()
            };
            job_to_json(&job).get("completed_at").is_some()
        };
        assert!(!expired(vec![]) && !expired(vec![failed(4000)]) && expired(vec![failed(9000)]));
    }

    #[test]
    fn a_failure_is_a_full_record() {
        let job =
            Job { state: JobState::Retryable, errors: vec![failed(10)], retry_delay_ms: Some(1000), ..job() };
        let shown = job_to_json(&job);
        assert_eq!(
            shown["error"],
            json!({
                "code": "AGENT_TOKEN_BUDGET_EXCEEDED", "type": "agent.token_budget", "message": "spent",
                "retryable": true, "details": {"limit": 5, "ossa_code": "QUOTA_EXCEEDED", "recoverable": true}, "attempt": 1,
                "occurred_at": "1970-01-01T00:00:00.010Z", "timestamp": "1970-01-01T00:00:00.010Z",
            })
        );
        assert_eq!(shown["errors"], json!([shown["error"]]));
        assert_eq!(
            (&shown["retry_delay_ms"], &shown["next_retry_at"]),
            (&json!(1000), &json!("1970-01-01T00:00:05.000Z"))
        );
        let completed = job_to_json(&Job { state: JobState::Completed, ..job });
        assert_eq!(completed.get("error"), None);
    }

    #[test]
    fn the_server_fills_its_agent_fields_and_extras_never_override() {
        let mut job = job();
        job.state = JobState::Completed;
        job.envelope.extra =
            raw(&json!({"ext_agent_tokens_used": 7, "state": "mine", "job": 1, "z": 0, "a": 0}));
        job.agent = Some(AgentJob {
            engagement_id: EngagementId("e".into()),
            position: Position { model_used: Some("m".into()), ..Position::default() },
            tokens_used: 42,
            cost: 1_500,
            tool_results: Some(ToolResults { newest: vec![json!({"name": "web_search"})], whole: true }),
        });
        let reply = serde_json::to_value(JobReply::from(&job)).unwrap();
        let reply = reply.as_object().unwrap();
        assert_eq!((&reply["ext_agent_tokens_used"], &reply["state"]), (&json!(42), &json!("completed")));
        assert_eq!(reply["ext_agent_cost"], "0.0015", "money is text, never floating point");
        assert_eq!(
            (&reply["ext_agent_model_used"], &reply["ext_agent_engagement_id"]),
            (&json!("m"), &json!("e"))
        );
        assert_eq!(reply["ext_agent_tool_results"], json!([{"name": "web_search"}]));
        assert_eq!((&reply["job"]["id"], &reply["job"]["z"]), (&reply["id"], &json!(0)));
        let keys: Vec<&str> = reply.keys().map(String::as_str).collect();
        assert_eq!(keys[keys.len() - 2..], ["z", "a"]);
    }

    #[test]
    fn what_was_sent_as_text_is_shown_as_text() {
        let mut job = job();
        job.envelope.args = RawJson::from_text("[1e400, 1.0,100000000000000000000000000000]".into()).unwrap();
        job.envelope.extra = serde_json::from_str(r#"{"z":{"b":0.10,"a":1E2}}"#).unwrap();
        job.result = Some(RawJson::from_text("[ -0.0 ]".into()).unwrap());
        job.workflow_id = Some("w".into());
        job.parent_results = Some(vec!["1e999".into(), "null".into()]);
        job.saved = Some(SavedState { state: "{\"n\":1.50}".into(), sequence: 2, at: Timestamp(0) });
        let text = serde_json::to_string(&JobBody::from(&job)).unwrap();
        for part in [
            r#""args":[1e400, 1.0,100000000000000000000000000000]"#,
            r#""z":{"b":0.10,"a":1E2}"#,
            r#""result":[ -0.0 ]"#,
            r#""workflow_id":"w","parent_results":[1e999,null]"#,
            r#""checkpoint":{"state":{"n":1.50},"sequence":2,"created_at":"1970-01-01T00:00:00.000Z"}"#,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let reply = serde_json::to_string(&JobReply::from(&job)).unwrap();
        assert!(reply.starts_with(&format!("{{\"job\":{text},\"specversion\":\"1.0\"")), "{reply}");
    }
}
