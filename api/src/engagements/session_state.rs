//! `GET /engagements/{id}/state`: the state that the agent keeps between turns (OSSA §3).

use crate::api::Shared;
use crate::docs::rows;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use crate::show;
use axum::extract::State;
use serde_json::{Value, json};
use turnstone_domain::session_state::Scope;

/// The state that the agent keeps, as committed: changes of a running turn are not in it.
#[utoipa::path(
    get, path = "/engagements/{id}/state", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The engagement.")),
    responses((status = 200, description = "The state.", body = rows::SessionState)),
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
        None => turnstone_domain::session_state::StateSnapshot::default(),
    };
    let entries: Vec<Value> = state.entries.iter().map(show::state_entry).collect();
    Ok(reply::ok(&json!({
        "engagement_id": engagement.id,
        "mode": agent.state.mode,
        "isolation_level": agent.state.isolation,
        "shared": scope.is_some_and(|scope| !scope.of_engagement),
        "version": state.version,
        "entries": entries,
    })))
}
