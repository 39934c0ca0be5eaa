//! `GET /engagements/{id}/diff?with=`: the first difference of two engagements, and the cost of each of their turns.

use super::export;
use crate::api::{App, Shared};
use crate::reply::{self, Answer, Failure};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use serde_json::{Value, json};
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
    turns: Vec<Value>,
    total: Value,
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
    let turns = compared.turns.into_iter().map(|pair| {
        let (a, b) = (pair.a.map(facts), pair.b.map(facts));
        json!({"turn": pair.turn, "shared": pair.shared, "same": pair.same, "a": a, "b": b})
    });
    let total = json!({"a": cost(&compared.total.0), "b": cost(&compared.total.1)});
    Ok(reply::ok(&Diff { a: id, b: with, parts_at: compared.parts_at, turns: turns.collect(), total }))
}

fn cost(cost: &Cost) -> Value {
    json!({"tokens_in": cost.tokens_in, "tokens_out": cost.tokens_out, "cost": Amount(cost.cost)})
}

fn facts(TurnFacts { model, tool_calls, cost }: TurnFacts) -> Value {
    json!({"tokens_in": cost.tokens_in, "tokens_out": cost.tokens_out, "cost": Amount(cost.cost),
           "model": model, "tool_calls": tool_calls})
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
