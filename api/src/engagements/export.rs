//! `GET /engagements/{id}/export`: the whole record of an engagement, as one document.

mod past;

use crate::api::{App, Shared};
use crate::ojs::attest::signer;
use crate::reply::{Answer, Failure};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use std::collections::BTreeSet;
use turnstone_domain::agent::Admission;
use turnstone_domain::agent::delegation::OnFailure;
use turnstone_domain::engagement::{Engagement, NewEngagement};
use turnstone_domain::event::Event;
use turnstone_domain::message::StoredMessage;
use turnstone_domain::record::{EngagementRecord, JobEnd, RecordedArtifact};
use turnstone_domain::review::Review;
use turnstone_domain::session_state::Scope;
use turnstone_domain::{AgentDefinition, Checkpoint, EngagementId, Job, JobId, NewJob, Terms};
use turnstone_ojs::OjsError;
use turnstone_store::{EventFilter, Page, ReviewFilter};

/// Rows that are read at once.
const PAGE: u32 = 500;

/// The record of an engagement that has ended, as one document of a JSON value per line, with a signed digest. It
/// has the agent, the job, checkpoints, conversation, tool journal, files, reviews, events and state, with all content in
/// the clear. A fork's document includes the past that it shares. Another server imports it with
/// `POST /engagements/import`, and `turnstone engagement replay` runs it again.
#[utoipa::path(
    get, path = "/engagements/{id}/export", tag = "engagements",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The engagement.")),
    responses((status = 200, description = "The document.", body = String, content_type = "application/x-ndjson")),
)]
pub(crate) async fn export(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let (engagement, agent, job_id) = super::find(&app, &id, &tenant).await?;
    super::not_held_back(&app, &agent, &job_id, &tenant).await?;
    let missing = || OjsError::not_found("job", job_id.shown());
    let job = app.api.store.views.recorded_job(&job_id).await?.ok_or_else(missing)?;
    if !job.state.is_terminal() {
        let message = format!("Engagement {id} has not ended: its job {job_id} is {}.", job.state);
        return Err(OjsError::conflict(message).with("state", job.state.as_str()).into());
    }
    if !app.api.store.views.is_only_input(&job_id).await? {
        let message = format!("Engagement {id} had several inputs; a document has room for one.");
        return Err(OjsError::conflict(message).into());
    }
    complete(&app, &engagement.id).await?;
    // An unverified import is not signed: other servers would trust it like an engagement of this one.
    let is_verified = !agent.imported || agent.admitted == Some(Admission::Signed);
    let record = record(&app, engagement, agent, job).await?;
    let signer = signer(&app).await?;
    let text = record.write_signed(|text| is_verified.then(|| signer.sign(text))).map_err(|error| {
        OjsError::new(500, "internal", format!("The document cannot be written: {error}."), "Report this.")
    })?;
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], text).into_response())
}

/// Refuses an engagement whose record lacks turns or phases: a document of it would look like a whole one.
async fn complete(app: &App, id: &EngagementId) -> Result<(), Failure> {
    let missing = app.api.store.views.record_gaps(id).await?;
    let Some(first) = missing.first() else { return Ok(()) };
    let rest = match missing.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let message = format!("The record of engagement {id} is incomplete: {first}{rest}.");
    let advice = "The database lost commits. `turnstone doctor --data` names all that is missing; restore it from a backup, \
                  or read what is left with `GET /engagements/ID/checkpoints`.";
    Err(OjsError::new(500, "incomplete_record", message, advice).into())
}

/// Returns all checkpoints, each with its job.
pub(super) async fn checkpoints(app: &App, id: &EngagementId) -> Result<Vec<(JobId, Checkpoint)>, Failure> {
    let mut rows = Vec::new();
    for offset in (0..).step_by(PAGE as usize) {
        let page = app.api.store.views.checkpoints(id, Page { limit: PAGE, offset }).await?;
        let is_last = page.len() < PAGE as usize;
        rows.extend(page.into_iter().map(|row| (row.job_id, row.checkpoint)));
        if is_last {
            break;
        }
    }
    Ok(rows)
}

/// Returns the whole conversation.
pub(super) async fn messages(app: &App, id: &EngagementId) -> Result<Vec<StoredMessage>, Failure> {
    let mut rows: Vec<StoredMessage> = Vec::new();
    loop {
        let after = rows.last().map_or(0, |last| last.seq);
        let page = app.api.store.views.messages(id, after, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        rows.extend(page);
        if is_last {
            return Ok(rows);
        }
    }
}

async fn events(app: &App, id: &EngagementId) -> Result<Vec<Event>, Failure> {
    let filter = EventFilter::Engagement(id.clone());
    let mut rows: Vec<Event> = Vec::new();
    loop {
        let after = rows.last().map_or(0, |last| last.seq);
        let page = app.api.store.views.recorded_events(&filter, after, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        rows.extend(page);
        if is_last {
            return Ok(rows);
        }
    }
}

async fn reviews(app: &App, id: &EngagementId) -> Result<Vec<Review>, Failure> {
    let filter = ReviewFilter { engagement: Some(id.clone()), ..ReviewFilter::default() };
    let mut rows = Vec::new();
    for offset in (0..).step_by(PAGE as usize) {
        let page = app.api.store.views.recorded_reviews(&filter, Page { limit: PAGE, offset }).await?;
        let is_last = page.len() < PAGE as usize;
        rows.extend(page);
        if is_last {
            break;
        }
    }
    Ok(rows)
}

/// Returns the agents that one may call: for its capabilities, as fallbacks, and as reviewers.
fn agents_of(app: &App, agent: &AgentDefinition) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for capability in &agent.capabilities {
        let is_tool =
            capability.origin.is_some() || app.api.tools.iter().any(|tool| tool.name == capability.name);
        if let Some(terms) = capability.delegate(is_tool) {
            if let OnFailure::Fallback { agents } = &terms.on_failure {
                names.extend(agents.iter().cloned());
            }
            names.insert(terms.agent);
        }
        let restrictions = [&capability.input_restriction, &capability.output_restriction];
        for word in restrictions.into_iter().filter_map(|one| one.require_review.as_deref()) {
            names.extend(word.strip_prefix("oagent://").map(str::to_owned));
        }
    }
    let supervisor = agent.errors.escalation.as_ref().filter(|contact| contact.supervisor);
    names.extend(supervisor.map(|contact| contact.target.clone()));
    names
}

async fn record(
    app: &App,
    engagement: Engagement,
    agent: AgentDefinition,
    job: Job,
) -> Result<EngagementRecord, Failure> {
    // Secrets stay on the server, and each server marks its own imports.
    let agent = agent.portable();
    let views = &app.api.store.views;
    let id = &engagement.id;
    let checkpoints = checkpoints(app, id).await?.into_iter().map(|(_, done)| done).collect();
    let mut messages = messages(app, id).await?;
    // Messages whose retention is over leave no gaps in a document.
    (1..).zip(&mut messages).for_each(|(seq, stored)| stored.seq = seq);
    let events = events(app, id).await?;
    let reviews = reviews(app, id).await?;
    let scope = match app.api.store.forks.origin(&job.id).await? {
        Some(_) => Scope::of_fork(&agent, &engagement),
        None => Scope::of(&agent, &engagement, &job.envelope.meta),
    };
    let state = match scope {
        Some(scope) => views.session_state(&scope, app.api.clock.now()).await?.entries,
        None => Vec::new(),
    };
    let mut delegates = Vec::new();
    for name in agents_of(app, &agent) {
        let found = views.agent(&name, job.tenant.as_deref()).await?;
        delegates.extend(found.map(|found| found.definition));
    }
    let names: BTreeSet<&str> =
        agent.capabilities.iter().map(|capability| capability.name.as_str()).collect();
    let tools = app.api.tools.iter().filter(|tool| names.contains(tool.name.as_str())).cloned().collect();
    let calls = views.tool_calls(id).await?;
    let artifacts = artifacts(app, id).await?;
    let past = past::of(app, &job.id, &calls).await?;
    let events = past.events.into_iter().chain(events).collect();
    let reviews = past.reviews.into_iter().chain(reviews).collect();
    let depth = app.api.store.delegations.links(&job.id, 1).await?.depth;
    let (job, end) = parted(engagement, agent, job, depth);
    Ok(EngagementRecord {
        job,
        end,
        checkpoints,
        messages,
        calls,
        artifacts,
        reviews,
        events,
        state,
        delegates,
        tools,
    })
}

/// Returns the files of an engagement and of the past that it shares.
async fn artifacts(app: &App, id: &EngagementId) -> Result<Vec<RecordedArtifact>, Failure> {
    let stored = &app.api.store.artifacts;
    let mut recorded = Vec::new();
    for listed in stored.artifacts(id).await? {
        let content = stored.artifact_content(&listed.id).await?;
        recorded.extend(content.map(|content| RecordedArtifact::of(listed, content)));
    }
    Ok(recorded)
}

/// Returns a job as it was enqueued, and how it ended.
fn parted(engagement: Engagement, agent: AgentDefinition, job: Job, depth: i64) -> (NewJob, JobEnd) {
    let side = job.agent.map(|side| (side.position, side.tokens_used));
    let (position, tokens_used) = side.unwrap_or_default();
    let end = JobEnd {
        state: job.state,
        attempt: job.attempt,
        failures: job.failures,
        started_at: job.started_at,
        ended_at: job.ended_at,
        position,
        tokens_used,
        result: job.result,
        errors: job.errors,
    };
    let new = NewJob {
        id: job.id.shown().into(),
        job_type: job.job_type,
        queue: job.queue,
        priority: job.priority,
        run_at: job.created_at,
        expires_at: job.expires_at,
        timeout_ms: job.timeout_ms,
        retry: job.retry,
        envelope: job.envelope,
        engagement: Some(NewEngagement { id: engagement.id, agent, user: engagement.user, depth }),
        terms: Terms { tenant: job.tenant, parent_results: job.parent_results, ..Terms::default() },
        created_at: job.created_at,
    };
    (new, end)
}
