//! `POST /engagements/{id}/fork`: a new engagement that continues from a turn of this one, with something changed.

use crate::api::Shared;
use crate::principals::work;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use turnstone_domain::fork::{ForkChanges, ForkPoint, Origin};
use turnstone_domain::principal::WorkKind;
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{EngagementId, JobId, Phase, RawObject};
use turnstone_ojs::request::between;
use turnstone_ojs::{Fields, OjsError, did_you_mean};
use turnstone_store::{ForkRefusal, NewFork};
use utoipa::ToSchema;

/// The members of a request.
const MEMBERS: [&str; 4] = ["at_turn", "phase", "set", "live_tools"];
/// The longest prompt that may be set, in bytes.
const MOST_PROMPT: usize = 4 * 1024 * 1024;
/// The longest name of a model or provider, in bytes.
const MOST_NAME: usize = 255;

/// The fork point, and the changes.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"at_turn": 2, "phase": "infer", "set": {"prompt": "Be brief."}}))]
pub(super) struct EngagementForkRequest {
    /// The turn of the fork point. Turns before it are shared.
    #[serde(default, deserialize_with = "between::<_, 1, { i64::MAX }>")]
    #[schema(minimum = 1, value_type = i64, required = true)]
    at_turn: Option<i64>,
    /// The first phase of the turn that is run anew: init (the default), norm, resol, infer, exec, persist or emit.
    phase: Option<String>,
    /// The changes.
    set: Option<Set>,
    /// True if tools and delegates are called. Otherwise recorded outcomes replace calls with the same name and
    /// arguments, and a call without one fails the fork.
    live_tools: Option<bool>,
}

/// The changes.
#[derive(Deserialize, ToSchema)]
struct Set {
    /// The agent's instructions.
    prompt: Option<String>,
    /// The one model that is called.
    model: Option<String>,
    /// The provider that is called.
    provider: Option<String>,
    /// The outputs of recorded calls, by the ids of the calls.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    tool_results: Option<RawObject>,
}

/// The new engagement.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Forked {
    /// Its id.
    pub engagement_id: String,
    /// Its job.
    pub job_id: String,
    forked_from: ForkedFrom,
}

/// The origin of an engagement.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ForkedFrom {
    /// Its id.
    pub engagement_id: String,
    /// The first turn of its own.
    pub at_turn: i64,
    /// The first phase of its own.
    pub phase: String,
    live_tools: bool,
    /// The changes: prompt, model, provider, and the calls whose outputs were replaced.
    set: Vec<String>,
}

impl From<&Origin> for ForkedFrom {
    fn from(origin: &Origin) -> Self {
        Self {
            engagement_id: origin.engagement_id.0.clone(),
            at_turn: origin.point.turn,
            phase: origin.point.phase.to_string(),
            live_tools: origin.live_tools,
            set: origin.changes.names(),
        }
    }
}

/// Forks an engagement: a new one continues from a turn of this one, with its own id, job and budget. The past before
/// the fork point is shared and paid for. This one stays as it is.
#[utoipa::path(
    post, path = "/engagements/{id}/fork", operation_id = "fork_engagement", tag = "engagements",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The engagement.")),
    request_body = EngagementForkRequest,
    responses((status = 201, description = "The new engagement.", body = Forked)),
)]
pub(crate) async fn fork(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let fields = Fields::read(&body)?;
    if let Some(unknown) = fields.0.names().find(|name| !MEMBERS.contains(name)) {
        let why = format!("is not known here{}", did_you_mean(unknown, MEMBERS));
        return Err(OjsError::invalid_request(unknown, why).into());
    }
    let missing = || OjsError::invalid_request("at_turn", "is missing: say in which turn they part");
    known_settings(&fields)?;
    let EngagementForkRequest { at_turn, phase, set, live_tools } = fields.typed()?;
    let turn = at_turn.ok_or_else(missing)?;
    let phase = match phase {
        None => Phase::Init,
        Some(word) => Phase::ALL.into_iter().find(|phase| phase.as_str() == word).ok_or_else(|| {
            OjsError::invalid_request("phase", "must be init, norm, resol, infer, exec, persist or emit")
        })?,
    };
    let (origin_engagement, _, _) = super::find(&app, &id, &tenant).await?;
    work::check_user(&tenant.principal, WorkKind::Chosen, &origin_engagement.user)?;
    let fork = NewFork {
        from: EngagementId::from(id.as_str()),
        by: tenant.principal.identity.clone(),
        tenant: tenant.into_name(),
        point: ForkPoint { turn, phase },
        changes: set.map(changes).transpose()?.unwrap_or_default(),
        live_tools: live_tools.unwrap_or(false),
        engagement: EngagementId(app.api.ids.next()),
        job: JobId(app.api.ids.next()),
        at: app.api.clock.now(),
    };
    let made = Origin {
        engagement_id: fork.from.clone(),
        point: fork.point,
        live_tools: fork.live_tools,
        changes: fork.changes.clone(),
    };
    let (engagement_id, job_id) = (fork.engagement.clone(), fork.job.clone());
    app.api.store.forks.fork(fork).await?.map_err(|refusal| refused(&id, turn, &refusal))?;
    let answer = Forked {
        engagement_id: engagement_id.0,
        job_id: job_id.to_string(),
        forked_from: ForkedFrom::from(&made),
    };
    Ok(reply::json(StatusCode::CREATED, &answer))
}

/// Refuses a change of something else.
fn known_settings(fields: &Fields) -> Result<(), Failure> {
    let set = fields.object("set")?.unwrap_or_default();
    match set.names().find(|name| !["prompt", "model", "provider", "tool_results"].contains(name)) {
        Some(name) => {
            let why = "is not something that can be set: prompt, model, provider and tool_results are";
            Err(OjsError::invalid_request(&format!("set.{name}"), why).into())
        }
        None => Ok(()),
    }
}

fn changes(set: Set) -> Result<ForkChanges, Failure> {
    let checked = |name: &str, text: Option<String>, most: usize| match text {
        Some(text) if text.is_empty() || text.len() > most => {
            let why = format!("must have 1 to {most} bytes");
            Err(OjsError::invalid_request(&format!("set.{name}"), why))
        }
        text => Ok(text),
    };
    let mut tool_results = BTreeMap::new();
    for (call, output) in set.tool_results.unwrap_or_default().iter() {
        let output: Value = output.parse().map_err(|_| {
            OjsError::invalid_request(
                "set.tool_results",
                format!("the output of {call} has a number that is too large"),
            )
        })?;
        tool_results.insert(call.to_owned(), ToolOutcome::Success { output });
    }
    Ok(ForkChanges {
        prompt: checked("prompt", set.prompt, MOST_PROMPT)?,
        model: checked("model", set.model, MOST_NAME)?,
        provider: checked("provider", set.provider, MOST_NAME)?,
        tool_results,
    })
}

/// Returns why there is no fork, for the client.
fn refused(id: &str, turn: i64, refusal: &ForkRefusal) -> Failure {
    let hint = "GET /engagements/{id}/checkpoints lists the phases that are done.";
    let error = match refusal {
        ForkRefusal::NoEngagement => OjsError::not_found("engagement", id),
        ForkRefusal::SeveralInputs => OjsError::conflict(format!(
            "Engagement {id} had several inputs; only one with a single input can be forked."
        )),
        ForkRefusal::NoTurn { newest } => OjsError::new(
            422,
            "no_such_turn",
            format!(
                "Engagement {id} has not come as far as turn {turn}; it can be forked up to turn {newest}."
            ),
            hint,
        )
        .with("newest_turn", *newest),
        ForkRefusal::NoPhase { furthest } => OjsError::new(
            422,
            "no_such_phase",
            format!(
                "Turn {turn} of engagement {id} has not come as far; it can be forked up to phase {furthest}."
            ),
            hint,
        )
        .with("furthest_phase", furthest.as_str()),
        ForkRefusal::NoCall(call) => OjsError::new(
            422,
            "no_such_call",
            format!("Engagement {id} has no call {call} whose outcome is known."),
            "GET /engagements/{id}/tool-calls lists its calls.",
        )
        .with("call_id", call.as_str()),
        ForkRefusal::CallBefore { call, turn } => OjsError::new(
            422,
            "call_before_fork",
            format!(
                "Call {call} was made in turn {turn}, before the point where the engagements would part."
            ),
            "Fork at the turn of the call, phase exec, or earlier.",
        )
        .with("call_id", call.as_str())
        .with("turn", *turn),
        ForkRefusal::NoModel => OjsError::invalid_request(
            "set.provider",
            "needs set.model, because the agent names no model of its own",
        ),
    };
    error.into()
}
