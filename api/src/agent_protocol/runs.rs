//! `GET /agents/{name}/runs`: the runs that are kept, the newest first.

use super::{find, name};
use crate::api::Shared;
use crate::names::Names;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_store::RunRow;
use utoipa::ToSchema;

/// A run that is kept.
#[derive(Serialize, ToSchema)]
struct ListedRun {
    run_id: String,
    agent: String,
    created_at: String,
    updated_at: String,
    /// The number of its newest event that a client has received.
    last_event_id: i64,
    /// Its requests, the oldest first; at most 100.
    requests: Vec<String>,
}

/// The runs of an agent (Agent Protocol, optional endpoint).
#[utoipa::path(
    get, path = "/agents/{name}/runs", tag = "agent protocol",
    security(("tenant" = ["viewer"])),
    params(
        ("name" = String, Path, description = "The agent's name."),
        ("after" = Option<String>, Query, description = "After the run with this id, instead of `page`."),
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise.", minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "A page of runs, the newest first.", body = Vec<ListedRun>)),
)]
pub(crate) async fn runs(
    State(app): State<Shared>,
    Segment(agent): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    let page = params.page()?.1;
    let runs = app.api.store.runs.runs_of(&agent, tenant.name(), page, params.after()).await?;
    if runs.is_empty() {
        // Runs of an agent that is no longer registered are kept.
        find::agent(&app, &agent, &tenant).await?;
    }
    let names = app.names().await?;
    Ok(reply::ok(&runs.into_iter().map(|run| ListedRun::of(names, &agent, run)).collect::<Vec<_>>()))
}

impl ListedRun {
    fn of(names: &Names, agent: &str, run: RunRow) -> Self {
        let requests = run.requests.iter();
        Self {
            requests: requests
                .map(|(job, meta, tenant)| name::within(names, meta, job, tenant.as_deref()))
                .collect(),
            run_id: run.id.to_string(),
            agent: agent.to_owned(),
            created_at: run.started_at.to_rfc3339(),
            updated_at: run.changed_at.to_rfc3339(),
            last_event_id: run.last,
        }
    }
}
