//! `GET /engagements/{id}/state`: the state that the agent keeps between turns (OSSA §3).

use super::visible::Visible;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use turnstone_domain::Timestamp;
use turnstone_domain::agent::session::{Isolation, StateMode};
use turnstone_domain::session_state::{Scope, StateEntry, StateSnapshot};
use utoipa::ToSchema;

/// The state that an agent keeps between turns.
#[derive(Serialize, ToSchema)]
struct SessionState {
    engagement_id: String,
    /// stateless, session or long_running.
    #[schema(value_type = String)]
    mode: StateMode,
    #[schema(value_type = String)]
    isolation_level: Isolation,
    /// True if other engagements of the same user share the state.
    shared: bool,
    /// How often it was changed.
    version: i64,
    /// None of an agent with an output guardrail, because its model wrote them.
    entries: Vec<SessionStateEntry>,
}

/// A key of an agent's state.
#[derive(Serialize, ToSchema)]
struct SessionStateEntry {
    key: String,
    value: Value,
    /// The version of the state that wrote it.
    version: i64,
    updated_at: String,
    expires_at: Option<String>,
}

impl From<StateEntry> for SessionStateEntry {
    fn from(entry: StateEntry) -> Self {
        let StateEntry { key, value, version, updated_at, expires_at } = entry;
        let (updated_at, expires_at) = (updated_at.to_rfc3339(), expires_at.map(Timestamp::to_rfc3339));
        Self { key, value, version, updated_at, expires_at }
    }
}

/// The state that the agent keeps, as committed: changes of a running turn are not in it.
#[utoipa::path(
    get, path = "/engagements/{id}/state", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The engagement.")),
    responses((status = 200, description = "The state.", body = SessionState)),
)]
pub(crate) async fn session_state(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let (engagement, agent, job_id) = super::find(&app, &id, &tenant).await?;
    let views = &app.api.store.views;
    let meta = views.job(&job_id).await?.map(|job| job.envelope.meta).unwrap_or_default();
    let scope = match app.api.store.forks.origin(&job_id).await? {
        Some(_) => Scope::of_fork(&agent, &engagement),
        None => Scope::of(&agent, &engagement, &meta),
    };
    let state = match &scope {
        Some(scope) => views.session_state(scope, app.api.clock.now()).await?,
        None => StateSnapshot::default(),
    };
    let visible = Visible::of(&app, &engagement, &agent).await?;
    let shown = state.entries.into_iter().filter(|_| visible.has_state());
    let entries = shown.map(|mut entry| {
        agent.safety.redact(&mut entry.value);
        SessionStateEntry::from(entry)
    });
    Ok(reply::ok(&SessionState {
        engagement_id: engagement.id.0,
        mode: agent.state.mode,
        isolation_level: agent.state.isolation,
        shared: scope.is_some_and(|scope| !scope.of_engagement),
        version: state.version,
        entries: entries.collect(),
    }))
}
