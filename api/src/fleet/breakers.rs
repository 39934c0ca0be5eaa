//! `GET /breakers`: circuit breakers with failures that count, and those that are not closed.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::Timestamp;
use utoipa::ToSchema;

/// A circuit breaker.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Breaker {
    /// `tool/AGENT/TOOL` or `model/PROVIDER/MODEL`.
    pub name: String,
    /// closed, open or half-open.
    pub state: String,
    /// Failures that count.
    pub failures: i64,
    /// The time after which trial calls are made.
    pub open_until: Option<String>,
}

/// Circuit breakers.
#[derive(Serialize, ToSchema)]
pub(crate) struct Breakers {
    /// By name.
    pub breakers: Vec<Breaker>,
}

/// Lists the circuit breakers that are open or half-open, or that count failures.
#[utoipa::path(
    get, path = "/breakers", operation_id = "list_breakers", tag = "fleet",
    security(("fleet" = ["viewer"])),
    responses((status = 200, description = "The breakers.", body = Breakers)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant) -> Answer {
    super::whole_fleet(&tenant)?;
    let now = app.api.clock.now();
    let troubled = app.api.store.breakers.troubled().await?;
    let shown = troubled.into_iter().map(|trouble| Breaker {
        name: trouble.key.name(),
        state: match trouble.open_until {
            None => "closed",
            Some(_) if trouble.is_open(now) => "open",
            Some(_) => "half-open",
        }
        .to_owned(),
        failures: trouble.failures,
        open_until: trouble.open_until.map(Timestamp::to_rfc3339),
    });
    Ok(reply::ok(&Breakers { breakers: shown.collect() }))
}
