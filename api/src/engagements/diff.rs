//! `GET /engagements/{id}/diff?with=`: the first difference of two engagements, and the cost of each of their turns.

use super::export;
use crate::api::{App, Shared};
use crate::reply::{self, Answer, Failure};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::budget::Amount;
use turnstone_domain::comparison::{Cost, Parting, Side, TurnFacts, compare};
use turnstone_domain::message::Role;
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// Two engagements, compared.
#[derive(Serialize, ToSchema)]
pub(super) struct Diff {
    a: String,
    b: String,
    /// `null` when they are the same. Else `turn`, `phase`, `what` (input, tools, prompt, model, tool call, answer,
    /// result or end), and the value of each.
    #[schema(value_type = Option<Value>)]
    parts_at: Option<Parting>,
    /// For each turn: shared rows, equal content, and model, tools, tokens and cost of each.
    #[schema(value_type = Vec<Value>)]
    turns: Vec<Turn>,
    #[schema(value_type = Value)]
    total: Pair<Spent>,
}

/// A value of each engagement.
#[derive(Serialize)]
struct Pair<T> {
    a: T,
    b: T,
}

/// A turn of both engagements.
#[derive(Serialize)]
struct Turn {
    turn: i64,
    shared: bool,
    same: bool,
    #[serde(flatten)]
    sides: Pair<Option<OfTurn>>,
}

/// A turn of one engagement.
#[derive(Serialize)]
struct OfTurn {
    #[serde(flatten)]
    spent: Spent,
    model: Option<String>,
    tool_calls: Vec<String>,
}

/// Tokens, and their cost.
#[derive(Serialize)]
struct Spent {
    tokens_in: i64,
    tokens_out: i64,
    cost: Amount,
}

impl From<Cost> for Spent {
    fn from(cost: Cost) -> Self {
        Self { tokens_in: cost.tokens_in, tokens_out: cost.tokens_out, cost: Amount(cost.cost) }
    }
}

impl From<TurnFacts> for OfTurn {
    fn from(facts: TurnFacts) -> Self {
        Self { spent: facts.cost.into(), model: facts.model, tool_calls: facts.tool_calls }
    }
}

/// The first difference of two engagements, and the cost of each of their turns. Content that an output guardrail holds
/// back is not compared.
#[utoipa::path(
    get, path = "/engagements/{id}/diff", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The first engagement."),
        ("with" = String, Query, description = "The second one."),
    ),
    responses((status = 200, description = "The comparison.", body = Diff)),
)]
pub(crate) async fn diff(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    let missing = || OjsError::invalid_request("with", "is missing: name the engagement to compare with");
    let with = params.text("with").ok_or_else(missing)?.to_owned();
    let (a, b) = (side(&app, &id, &tenant).await?, side(&app, &with, &tenant).await?);
    let compared = compare(&a, &b);
    let turns = compared.turns.into_iter().map(|pair| Turn {
        turn: pair.turn,
        shared: pair.shared,
        same: pair.same,
        sides: Pair { a: pair.a.map(OfTurn::from), b: pair.b.map(OfTurn::from) },
    });
    Ok(reply::ok(&Diff {
        a: id,
        b: with,
        parts_at: compared.parts_at,
        turns: turns.collect(),
        total: Pair { a: compared.total.0.into(), b: compared.total.1.into() },
    }))
}

async fn side(app: &App, id: &str, tenant: &Tenant) -> Result<Side, Failure> {
    let (engagement, agent, _) = super::find(app, id, tenant).await?;
    let released = super::released(app, &engagement, &agent).await?;
    let mut checkpoints = export::checkpoints(app, &engagement.id).await?;
    checkpoints.retain(|(_, done)| done.turn <= released);
    let mut messages = export::messages(app, &engagement.id).await?;
    messages.retain(|stored| stored.turn <= released || stored.message.role == Role::User);
    let mut calls = app.api.store.views.tool_calls(&engagement.id).await?;
    calls.retain(|call| call.turn <= released);
    Ok(Side { agent, checkpoints, messages, calls })
}
