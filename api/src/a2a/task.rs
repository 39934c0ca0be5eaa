//! A task in A2A: a job of an agent, its state, the input and the result.

use super::message::parts_of;
use super::rpc::RpcRefusal;
use crate::api::App;
use crate::artifacts::visible;
use crate::engagements::waiting::{self, Among, Wanted, waiting};
use crate::engagements::{open_review, prompt, results};
use serde_json::{Value, json};
use turnstone_domain::artifact::Artifact;
use turnstone_domain::question::AskedUser;
use turnstone_domain::review::Review;
use turnstone_domain::{Job, JobState};

/// The id of the artifact that is the agent's answer.
pub(super) const ANSWER: &str = "answer";

/// Returns a task. `origin` is the address by which its client reaches this server.
pub(super) async fn shown(
    app: &App,
    origin: &str,
    job: &Job,
    history: Option<u64>,
) -> Result<Value, RpcRefusal> {
    let status = status(app, job).await?;
    let mut task = json!({"id": job.id, "contextId": context(job), "status": status});
    let files = files(app, origin, job).await?;
    let artifacts: Vec<Value> = artifact(job).into_iter().chain(files).collect();
    if !artifacts.is_empty() {
        task["artifacts"] = json!(artifacts);
    }
    if history != Some(0) {
        task["history"] = json!([message(job)]);
    }
    Ok(task)
}

/// Returns the status of a task: its state, since when, and why.
pub(super) async fn status(app: &App, job: &Job) -> Result<Value, RpcRefusal> {
    let review = match (&job.agent, job.state) {
        (Some(side), JobState::Pending) => open_review(app, &side.engagement_id).await?,
        _ => None,
    };
    let review = review.filter(|review| review.job_id == job.id);
    let mut status = json!({"state": state(job), "timestamp": changed_at(job, review.as_ref())});
    if let Some(requested) = asks(app, job).await? {
        status["state"] = json!("TASK_STATE_INPUT_REQUIRED");
        let keys = json!({"request_keys": requested.question.request_keys()});
        status["message"] = json!({"messageId": requested.call_id, "contextId": context(job), "taskId": job.id,
                                   "role": "ROLE_AGENT", "parts": [{"text": requested.question.prompt()}, {"data": keys}]});
    } else if let Some(words) = words(job, review.as_ref()) {
        let id = review.as_ref().map_or_else(|| format!("{}-end", job.id), |review| review.id.to_string());
        status["message"] = json!({"messageId": id, "contextId": context(job), "taskId": job.id,
                                   "role": "ROLE_AGENT", "parts": [{"text": words}]});
    }
    Ok(status)
}

/// Returns a task's question to its client: from its own agent, or from a delegate. The question counts as displayed to
/// the client.
async fn asks(app: &App, job: &Job) -> Result<Option<AskedUser>, RpcRefusal> {
    let Some(side) = job.agent.as_ref().filter(|_| job.state == JobState::Pending) else { return Ok(None) };
    let Some((engagement, _, _)) = app.api.store.views.engagement(&side.engagement_id).await? else {
        return Ok(None);
    };
    let mut waiting = waiting(app, &engagement, job, Among::Delegates).await?;
    waiting.truncate(1);
    waiting::note_displayed(app, &waiting).await?;
    Ok(waiting.pop().and_then(|one| match one.wanted {
        Wanted::Answer(requested) => Some(requested),
        Wanted::Word(_) => None,
    }))
}

/// Returns true if a task in this state waits for its client or has ended.
pub(super) fn rests(status: &Value) -> bool {
    let working = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"];
    !working.iter().any(|state| status["state"] == *state)
}

/// Returns the engagement, which is the context of the task.
pub(super) fn context(job: &Job) -> &str {
    job.agent.as_ref().map_or("", |side| side.engagement_id.as_str())
}

/// Returns the agent's answer.
pub(super) fn artifact(job: &Job) -> Option<Value> {
    let answer = results(&job.result.as_ref()?.parse().unwrap_or_default());
    let mut fields = answer.as_object()?.clone();
    let text = fields.remove("text");
    let parts: Vec<Value> = match fields.remove("output") {
        Some(output) if fields.is_empty() => vec![json!({"data": output, "mediaType": "application/json"})],
        output => {
            fields.extend(output.map(|output| ("output".to_owned(), output)));
            let exposed =
                (!fields.is_empty()).then(|| json!({"data": fields, "mediaType": "application/json"}));
            text.map(|text| json!({"text": text})).into_iter().chain(exposed).collect()
        }
    };
    Some(json!({"artifactId": ANSWER, "name": ANSWER, "parts": parts}))
}

/// Returns the files that the task has made, as far as they may be read.
pub(super) async fn files(app: &App, origin: &str, job: &Job) -> Result<Vec<Value>, RpcRefusal> {
    let Some(side) = &job.agent else { return Ok(Vec::new()) };
    let Some((engagement, agent, _)) = app.api.store.views.engagement(&side.engagement_id).await? else {
        return Ok(Vec::new());
    };
    let found = visible(app, &engagement, &agent).await?;
    let of_task = found.iter().filter(|file| file.job_id.as_ref() == Some(&job.id));
    Ok(of_task.map(|file| of_file(origin, file)).collect())
}

fn of_file(origin: &str, file: &Artifact) -> Value {
    let part = json!({"url": format!("{origin}{}", file.path()), "filename": file.name, "mediaType": file.media_type});
    json!({"artifactId": file.id, "name": file.name, "parts": [part],
           "metadata": {"bytes": file.bytes, "sha256": file.digest}})
}

/// Returns the client's input.
fn message(job: &Job) -> Value {
    let a2a = job.envelope.meta.get("a2a").and_then(|sent| sent.parse::<Value>().ok()).unwrap_or_default();
    let id = a2a["message_id"].as_str().unwrap_or(job.id.shown());
    let args = job.envelope.args.parse().unwrap_or_default();
    json!({"messageId": id, "contextId": context(job), "taskId": job.id, "role": "ROLE_USER",
           "parts": parts_of(&args)})
}

fn state(job: &Job) -> &'static str {
    match job.state {
        JobState::Scheduled | JobState::Available if job.started_at.is_none() => "TASK_STATE_SUBMITTED",
        JobState::Pending if job.started_at.is_none() => "TASK_STATE_SUBMITTED",
        // Only the reviewer may answer a review: for the client the agent works.
        JobState::Scheduled
        | JobState::Available
        | JobState::Retryable
        | JobState::Pending
        | JobState::Active => "TASK_STATE_WORKING",
        JobState::Completed => "TASK_STATE_COMPLETED",
        JobState::Discarded => "TASK_STATE_FAILED",
        JobState::Cancelled => "TASK_STATE_CANCELED",
    }
}

/// Returns the message about the state.
fn words(job: &Job, review: Option<&Review>) -> Option<String> {
    match job.state {
        JobState::Discarded | JobState::Retryable => {
            let answer = job.errors.last()?.error.event_data();
            Some(format!("{}: {}", answer.code, answer.message?))
        }
        JobState::Pending => review.map(prompt),
        _ => None,
    }
}

fn changed_at(job: &Job, review: Option<&Review>) -> String {
    let failed = job.errors.last().map(|failed| failed.at);
    let times =
        [Some(job.created_at), job.started_at, failed, review.map(|review| review.created_at), job.ended_at];
    times.into_iter().flatten().max().unwrap_or(job.created_at).to_rfc3339()
}
