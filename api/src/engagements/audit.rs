//! `GET /engagements/{id}/audit`: the Engagement object as expressions see it (OAS-54 … OAS-65), and every attempt with
//! its tries (RS-27). It also has the checks of guardrails (OAS-41 … OAS-46), and the reviews, escalations among them.

use super::tool_calls::JournalPage;
use super::visible::Visible;
use super::{exposed, object};
use crate::api::Shared;
use crate::budgets::engagement_cost::{self, CostParts};
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use crate::rows::{GuardrailCheck, Review, ToolCall};
use axum::extract::State;
use serde::Serialize;
use serde_json::{Value, json};
use turnstone_domain::agent::StateMode;
use turnstone_domain::agent::guardrails::Side;
use turnstone_domain::checkpoint::{PersistBody, Transaction};
use turnstone_domain::guardrail_check as check;
use turnstone_domain::review::{self, ReviewKind, ReviewState};
use turnstone_domain::{EngagementId, Phase};
use turnstone_store::{CheckpointRow, Page, ReviewFilter, StoreError, Views};
use utoipa::ToSchema;

/// Turns whose changes of state are shown.
const TURNS: u32 = 1000;
/// At most this many checks of guardrails are shown, the newest.
const CHECKS: u32 = 1000;
/// At most this many reviews of one engagement are shown.
const REVIEWS: u32 = 1000;

/// The actions of an engagement.
#[derive(Serialize, ToSchema)]
struct Audit {
    engagement_id: String,
    agent: String,
    /// The latest job.
    job_id: String,
    /// The Engagement object as expressions see it; null when it has more than 16 MiB.
    engagement: Value,
    /// For a tenant, without arguments and outcomes if the agent has an output guardrail.
    attempts: Vec<ToolCall>,
    /// To be sent as `after` for the next attempts.
    cursor: u32,
    has_more: bool,
    /// The questions to guardrails and their answers, oldest first; a tenant sees the verdicts alone.
    guardrails: Vec<GuardrailCheck>,
    /// The answer that an output guardrail kept from the user; null for tenants, and when there is none.
    answer_withheld: Option<String>,
    reviews: Vec<Review>,
    /// The changes of the agent's state in each turn, or none for a tenant of an agent with an output guardrail: mode, changes, transaction_id and status.
    #[schema(value_type = Vec<serde_json::Map<String, Value>>)]
    state: Vec<Value>,
    /// The usage and its cost: `phases` and `tools`, by job.
    #[schema(value_type = Value)]
    cost: CostParts,
}

/// The Engagement object as expressions see it, every attempt, and the reviews.
#[utoipa::path(
    get, path = "/engagements/{id}/audit", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The engagement."),
        ("after" = Option<u32>, Query, description = "Only attempts after this many: the `cursor` of the page before.", minimum = 0),
        ("limit" = Option<u32>, Query, description = "At most this many attempts; 100 unless said otherwise.", minimum = 1, maximum = 200),
    ),
    responses((status = 200, description = "The audit.", body = Audit)),
)]
pub(crate) async fn audit(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    let (engagement, agent, job_id) = super::find(&app, &id, &tenant).await?;
    super::not_held_back(&app, &agent, &job_id, &tenant).await?;
    let views = &app.api.store.views;
    let part = JournalPage::asked(views, &engagement.id, &params).await?;
    let object = object::of(views, &engagement, &agent).await?;
    let mut attempts = part.calls;
    let mut state = transactions(views, &engagement.id).await?;
    let visible = Visible::of(&app, &engagement, &agent).await?;
    // An operator of the server reads what the guardrail withholds, and a tenant does not.
    let is_withheld = tenant.name().is_some() && !visible.has_state();
    let object = object.map(|object| match is_withheld {
        true => object.without_words(|name| exposed::is_tool(&app, &agent, name)),
        false => object,
    });
    if is_withheld {
        attempts.iter_mut().for_each(|call| visible.withhold_call(call));
        state.clear();
    }
    let filter = ReviewFilter { engagement: Some(engagement.id.clone()), ..ReviewFilter::default() };
    let reviews = views.reviews(&filter, Page { limit: REVIEWS, offset: 0 }).await?;
    let cost = engagement_cost::parts(&app, &engagement.id).await?;
    let checks = app.api.store.views.guardrail_checks(&engagement.id, CHECKS).await?;
    Ok(reply::ok(&Audit {
        state,
        engagement_id: engagement.id.0,
        agent: engagement.agent,
        job_id: job_id.to_string(),
        engagement: object.map(|object| object.to_json()).unwrap_or_default(),
        attempts: attempts.into_iter().map(ToolCall::from).collect(),
        cursor: part.cursor,
        has_more: part.has_more,
        answer_withheld: withheld(&checks, &tenant).map(str::to_owned),
        guardrails: checks.into_iter().rev().map(|check| GuardrailCheck::of(check, &tenant)).collect(),
        reviews: reviews.into_iter().map(|review| shown(review, &tenant)).collect(),
        cost,
    }))
}

/// Returns a review; a tenant sees no output that was not approved (OAS-35).
fn shown(mut review: review::Review, tenant: &Tenant) -> Review {
    let is_withheld = review.kind == ReviewKind::Output && review.state != ReviewState::Approved;
    if is_withheld
        && tenant.name().is_some()
        && let Value::Object(question) = &mut review.question
    {
        question.shift_remove("outputs");
    }
    Review::from(review)
}

/// Returns the answer that an output guardrail kept from the user, for operators of the server.
fn withheld<'a>(newest_first: &'a [check::GuardrailCheck], tenant: &Tenant) -> Option<&'a str> {
    let last = newest_first.iter().find(|check| check.side == Side::Output)?;
    last.text().filter(|_| !last.passed && tenant.name().is_none())
}

/// The record of PERSIST, with its times in RFC 3339.
#[derive(Serialize)]
struct StateTransaction<'a> {
    transaction_id: &'a str,
    status: Transaction,
    mode: StateMode,
    storage: Option<&'a str>,
    changes: Vec<StateChange<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'a Value>,
    turn: i64,
}

#[derive(Serialize)]
struct StateChange<'a> {
    key: &'a str,
    previous_value: &'a Value,
    new_value: &'a Value,
    operation: &'a str,
    timestamp: String,
}

/// Returns the changes of the agent's state, oldest first: the records of PERSIST that have changes (RS-31).
async fn transactions(views: &Views, id: &EngagementId) -> Result<Vec<Value>, StoreError> {
    let newest_first = views.checkpoints_of(id, Phase::Persist, TURNS).await?.into_iter().rev();
    let shown = |row: CheckpointRow| {
        let body = row.checkpoint.read::<PersistBody>().filter(|body| !body.changes.is_empty())?;
        let changes = body.changes.iter().map(|change| StateChange {
            key: &change.key,
            previous_value: &change.previous_value,
            new_value: &change.new_value,
            operation: &change.operation,
            timestamp: change.timestamp.to_rfc3339(),
        });
        Some(json!(StateTransaction {
            transaction_id: &body.transaction_id,
            status: body.status,
            mode: body.mode,
            storage: body.storage.as_deref(),
            changes: changes.collect(),
            node: body.node.as_ref(),
            step: body.step.as_ref(),
            turn: row.checkpoint.turn,
        }))
    };
    Ok(newest_first.filter_map(shown).collect())
}
