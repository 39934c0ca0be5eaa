//! `GET /engagements/{id}/diff?with=`: the first difference of two engagements, and the cost of each of their turns.

use super::export;
use super::visible::Visible;
use crate::api::{App, Shared};
use crate::reply::{self, Answer, Failure};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnstone_domain::Phase;
use turnstone_domain::budget::Amount;
use turnstone_domain::comparison::{Cost, Parting, Side, TurnFacts, compare};
use turnstone_domain::message::Role;
use turnstone_ojs::{OjsError, OpenValue};
use utoipa::ToSchema;

/// Two engagements, compared.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Diff {
    a: String,
    b: String,
    /// Their first difference; `null` when they are the same.
    pub parts_at: Option<DiffParting>,
    /// Turn by turn.
    pub turns: Vec<DiffTurn>,
    /// The cost of all turns.
    pub total: DiffTotal,
}

/// The first difference of two engagements.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct DiffParting {
    /// The turn.
    pub turn: i64,
    /// The phase.
    #[schema(value_type = String)]
    pub phase: OpenValue<Phase>,
    /// input, tools, prompt, model, tool call, answer, result or end.
    pub what: String,
    /// The value in the first.
    pub a: Value,
    /// The value in the second.
    pub b: Value,
}

/// A turn of two engagements.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct DiffTurn {
    /// The turn.
    pub turn: i64,
    /// True if the rows are shared.
    pub shared: bool,
    /// True if the content is equal.
    pub same: bool,
    /// In the first engagement, if it has this turn.
    pub a: Option<DiffSide>,
    /// In the second.
    pub b: Option<DiffSide>,
}

/// A turn of one engagement.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct DiffSide {
    /// Its cost.
    #[serde(flatten)]
    pub cost: DiffCost,
    /// The model that was called.
    pub model: Option<String>,
    /// The tools that it called.
    pub tool_calls: Vec<String>,
}

/// Tokens, and their cost.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
pub struct DiffCost {
    /// Tokens of prompts.
    pub tokens_in: i64,
    /// Tokens of answers.
    pub tokens_out: i64,
    /// In units of the currency.
    #[schema(value_type = String)]
    pub cost: Amount,
}

/// The cost of two engagements.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct DiffTotal {
    /// Of the first.
    pub a: DiffCost,
    /// Of the second.
    pub b: DiffCost,
}

impl From<Parting> for DiffParting {
    fn from(Parting { turn, phase, what, a, b }: Parting) -> Self {
        Self { turn, phase: phase.into(), what: what.to_owned(), a, b }
    }
}

impl From<Cost> for DiffCost {
    fn from(cost: Cost) -> Self {
        Self { tokens_in: cost.tokens_in, tokens_out: cost.tokens_out, cost: Amount(cost.cost) }
    }
}

impl From<TurnFacts> for DiffSide {
    fn from(TurnFacts { model, tool_calls, cost }: TurnFacts) -> Self {
        Self { cost: cost.into(), model, tool_calls }
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
    let turns = compared.turns.into_iter().map(|pair| {
        let (a, b) = (pair.a.map(DiffSide::from), pair.b.map(DiffSide::from));
        DiffTurn { turn: pair.turn, shared: pair.shared, same: pair.same, a, b }
    });
    let total = DiffTotal { a: compared.total.0.into(), b: compared.total.1.into() };
    Ok(reply::ok(&Diff {
        a: id,
        b: with,
        parts_at: compared.parts_at.map(DiffParting::from),
        turns: turns.collect(),
        total,
    }))
}

async fn side(app: &App, id: &str, tenant: &Tenant) -> Result<Side, Failure> {
    let (engagement, agent, _) = super::find(app, id, tenant).await?;
    let visible = Visible::of(app, &engagement, &agent).await?;
    let mut checkpoints = export::checkpoints(app, &engagement.id).await?;
    checkpoints.retain(|(_, done)| visible.has(done.turn));
    let mut messages = export::messages(app, &engagement.id).await?;
    messages.retain(|stored| {
        visible.has(stored.turn) || (stored.message.role == Role::User && visible.has_inputs())
    });
    messages.iter_mut().for_each(|stored| visible.withhold(stored));
    let mut calls = app.api.store.views.tool_calls(&engagement.id).await?;
    calls.retain(|call| visible.has(call.turn));
    calls.iter_mut().for_each(|call| visible.withhold_call(call));
    Ok(Side { agent, checkpoints, messages, calls })
}
