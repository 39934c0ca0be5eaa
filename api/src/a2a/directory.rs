//! `GET /a2a`: the agents.

use super::card;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// An agent, and the address of its card.
#[derive(Serialize, ToSchema)]
struct A2aAgent {
    name: String,
    url: String,
    card: String,
}

/// The agents that A2A serves: all that serve the tenant.
#[utoipa::path(
    get, path = "/a2a", tag = "a2a",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "The agents.", body = [A2aAgent])),
)]
pub(crate) async fn directory(State(app): State<Shared>, tenant: Tenant) -> Answer {
    let agents = app.api.store.views.agents(tenant.name()).await?;
    let listed = agents.into_iter().map(|agent| {
        let url = format!("/a2a/{}", agent.definition.name);
        A2aAgent { name: agent.definition.name, card: format!("{url}{}", card::PLACE), url }
    });
    Ok(reply::ok(&listed.collect::<Vec<_>>()))
}
