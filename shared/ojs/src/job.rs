//! A job as clients read it (OJS core §3, OJS HTTP binding §5.2).

use crate::{SPEC_VERSION, when};
use serde_json::{Value, json};
use turnstone_domain::budget::Amount;
use turnstone_domain::error::FailureKind;
use turnstone_domain::job::{AgentJob, FailedAttempt, ToolResults};
use turnstone_domain::retry::OnExhaustion;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{Job, JobState, NewJob, RawJson, RawObject, Timestamp};

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

/// Returns the response with one job: the job itself and, for clients that expect a wrapper, the job in `job`.
#[must_use]
pub fn job_reply(job: &Job) -> RawObject {
    let flat = job_to_json(job);
    let mut reply = RawObject::new();
    reply.insert("job", flat.to_raw());
    reply.extend_new(flat);
    reply
}

/// Returns the job alone. A field that has no value is absent; a client's own fields follow in the client's order and
/// never override one of ours.
#[must_use]
pub fn job_to_json(job: &Job) -> RawObject {
    let mut out = RawObject::new();
    out.insert("specversion", SPEC_VERSION);
    out.insert("id", job.id.as_str());
    out.insert("type", job.job_type.as_str());
    out.insert("queue", job.queue.as_str());
    out.insert("state", job.state.as_str());
    out.insert("args", job.envelope.args.clone());
    out.insert("meta", job.envelope.meta.to_raw());
    out.insert("priority", job.priority);
    out.insert("attempt", job.attempt);
    out.insert("max_attempts", job.retry.max_attempts);
    put_options(job, &mut out);
    put_times(job, &mut out);
    put_work(job, &mut out);
    put_errors(job, &mut out);
    if let Some(data) = &job.waits_for {
        out.insert("waits_for", data.clone());
    }
    if let Some(why) = &job.damaged {
        out.insert("damaged", why.as_str());
    }
    if let Some(agent) = &job.agent {
        put_agent(job, agent, &mut out);
    }
    out.extend_new(job.envelope.extra.clone());
    out
}

fn put_options(job: &Job, out: &mut RawObject) {
    let options = &job.envelope.options;
    if !options.is_empty() {
        out.insert("options", options.to_raw());
    }
    if options.contains("retry") || options.contains("retry_policy") {
        out.insert("retry", json!(job.retry.shown()));
    }
    for name in ["tags", "unique", "rate_limit"] {
        if let Some(value) = options.given(name) {
            out.insert(name, value.clone());
        }
    }
    if let Some(timeout) = job.timeout_ms {
        out.insert("timeout_ms", timeout);
    }
}

fn put_times(job: &Job, out: &mut RawObject) {
    let sent = |name: &str| {
        let text = job.envelope.options.get(name)?.parse::<String>().ok()?;
        when::shown(&text, job.created_at)
    };
    let scheduled_at = sent("scheduled_at").or_else(|| sent("delay_until"));
    let moved = |at: &String| Timestamp::parse_rfc3339(at).is_none_or(|at| at != job.run_at);
    if job.state == JobState::Scheduled && scheduled_at.as_ref().is_none_or(moved) {
        // A limit, or the job that it replaced, changed the client's time.
        out.insert("scheduled_at", job.run_at.to_rfc3339());
    } else if let Some(at) = scheduled_at {
        out.insert("scheduled_at", at);
    }
    if let Some(at) = sent("expires_at").or_else(|| job.expires_at.map(Timestamp::to_rfc3339)) {
        out.insert("expires_at", at);
    }
    out.insert("created_at", job.created_at.to_rfc3339());
    out.insert("enqueued_at", job.created_at.to_rfc3339());
    if let Some(at) = job.started_at {
        out.insert("started_at", at.to_rfc3339());
    }
    let Some(ended_at) = job.ended_at else { return };
    let ended_text = ended_at.to_rfc3339();
    match job.state {
        JobState::Completed => out.insert("completed_at", ended_text),
        JobState::Cancelled => out.insert("cancelled_at", ended_text),
        JobState::Discarded => {
            out.insert("discarded_at", ended_text.as_str());
            if !has_expired(job, ended_at) {
                out.insert("completed_at", ended_text);
            }
        }
        _ => {}
    }
}

/// Adds the worker, the attempt, and the result or errors.
fn put_work(job: &Job, out: &mut RawObject) {
    if let Some(worker) = &job.worker_id {
        out.insert("worker_id", worker.as_str());
    }
    if let Some(workflow) = &job.workflow_id {
        out.insert("workflow_id", workflow.as_str());
    }
    if let Some(results) = &job.parent_results
        && let Ok(results) = RawJson::from_text(format!("[{}]", results.join(",")))
    {
        out.insert("parent_results", results);
    }
    if let Some(saved) = &job.saved
        && let Ok(state) = RawJson::from_text(saved.state.clone())
    {
        let mut checkpoint = RawObject::new();
        checkpoint.insert("state", state);
        checkpoint.insert("sequence", saved.sequence);
        checkpoint.insert("created_at", saved.at.to_rfc3339());
        out.insert("checkpoint", checkpoint);
    }
    if let Some(result) = &job.result {
        out.insert("result", result.clone());
    }
}

/// Returns true if the job was discarded because its `expires_at` passed, not because its last attempt failed.
fn has_expired(job: &Job, ended_at: Timestamp) -> bool {
    match job.errors.last() {
        Some(last) if last.error.kind == FailureKind::Expired => true,
        Some(last) if last.at >= ended_at => false,
        _ => job.expires_at.is_some_and(|at| at <= ended_at),
    }
}

fn put_errors(job: &Job, out: &mut RawObject) {
    if let Some(last) = job.errors.last() {
        if job.state != JobState::Completed {
            out.insert("error", error_record(last));
        }
        out.insert("errors", Value::Array(job.errors.iter().map(error_record).collect()));
    }
    if let Some(delay) = job.retry_delay_ms {
        out.insert("retry_delay_ms", delay);
    }
    if job.state == JobState::Retryable {
        out.insert("next_retry_at", job.run_at.to_rfc3339());
    }
}

fn error_record(failed: &FailedAttempt) -> Value {
    let mut details = failed.error.details.clone();
    if !matches!(failed.error.kind, FailureKind::Reported | FailureKind::Silence) {
        for (key, fact) in failed.error.facts() {
            details.entry(key).or_insert(fact);
        }
    }
    json!({
        "code": failed.error.code(),
        "type": failed.error.error_type(),
        "message": failed.error.message,
        "retryable": failed.error.retryable,
        "details": details,
        "attempt": failed.attempt,
        "occurred_at": failed.at.to_rfc3339(),
        "timestamp": failed.at.to_rfc3339(),
    })
}

/// The fields of the agent extension that only the server writes.
fn put_agent(job: &Job, agent: &AgentJob, out: &mut RawObject) {
    out.insert("ext_agent_engagement_id", agent.engagement_id.as_str());
    let ended = job.state.is_terminal();
    if ended || agent.tokens_used > 0 {
        out.insert("ext_agent_tokens_used", agent.tokens_used);
        if agent.cost > 0 {
            out.insert("ext_agent_cost", Amount(agent.cost).to_string());
        }
    }
    if let Some(model) = &agent.position.model_used {
        out.insert("ext_agent_model_used", model.as_str());
    }
    let Some(results) = &agent.tool_results else { return };
    if ended || !results.newest.is_empty() {
        out.insert("ext_agent_tool_results", Value::Array(results.newest.clone()));
    }
    if !results.whole {
        let path = format!("/engagements/{}/tool-calls", agent.engagement_id);
        out.insert("ext_agent_tool_results_before", path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::job::Envelope;
    use turnstone_domain::job::SavedState;
    use turnstone_domain::retry::RetryPolicy;
    use turnstone_domain::{EngagementId, JobError, Terms};

    fn job_to_json(job: &Job) -> Value {
        super::job_to_json(job).to_raw().parse().unwrap()
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
        let raw_reply = job_reply(&job);
        let reply = raw_reply.parse().unwrap();
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
        let text = super::job_to_json(&job).to_raw().into_text();
        for part in [
            r#""args":[1e400, 1.0,100000000000000000000000000000]"#,
            r#""z":{"b":0.10,"a":1E2}"#,
            r#""result":[ -0.0 ]"#,
            r#""workflow_id":"w","parent_results":[1e999,null]"#,
            r#""checkpoint":{"state":{"n":1.50},"sequence":2,"created_at":"1970-01-01T00:00:00.000Z"}"#,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let reply = serde_json::to_string(&job_reply(&job)).unwrap();
        assert!(reply.starts_with(&format!("{{\"job\":{text},\"specversion\":\"1.0\"")), "{reply}");
    }
}
