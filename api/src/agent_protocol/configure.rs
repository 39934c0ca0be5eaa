//! ConfigureRequest: settings for later requests, of all runs of an agent or of one (AP-A13).
//!
//! A setting is an `ext_agent_*` field without the prefix: `temperature` is `ext_agent_temperature`. Settings are
//! checked like those of a job.

use super::configured::{self, ConfigureRecord};
use super::find;
use super::request_types::ProtocolRequest;
use crate::api::App;
use crate::ojs::jobs::accept::accept;
use crate::principals::work;
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::{Map, Value, json};
use turnstone_domain::engagement::Engagement;
use turnstone_domain::principal::WorkKind;
use turnstone_domain::{RawJson, RawObject};
use turnstone_ojs::OjsError;
use turnstone_store::Configured;

/// The settings, in the words of the protocol's clients.
const SETTINGS: [&str; 9] = [
    "model",
    "fallback_models",
    "provider",
    "temperature",
    "max_tokens",
    "token_budget",
    "cost_budget",
    "tool_choice",
    "output_format",
];

/// The settings that a run takes only at its beginning.
const OF_THE_BEGINNING: [&str; 2] = ["token_budget", "cost_budget"];

/// Merges settings into the existing ones; `null` removes one. Returns the request with its events; a repeated request
/// is the first one.
///
/// # Errors
/// 403 for a run of another user, and for settings of all runs by a principal that acts for some users only.
/// 404 for an unknown run, 409 for an id of another request, and errors of the store.
pub(super) async fn configure(
    app: &App,
    agent: &str,
    requested: &ProtocolRequest,
    args: &Map<String, Value>,
    tenant: &Tenant,
) -> Result<ConfigureRecord, Failure> {
    if let Some(id) = &requested.request_id {
        if let Some(before) = configured::find(app, agent, id, tenant).await? {
            let message = format!("Request `{id}` was sent before with another body.");
            let same = before.digest == requested.digest && before.request_id == *id;
            return if same { Ok(before) } else { Err(OjsError::conflict(message).into()) };
        }
        configured::check_free(app, agent, id, tenant).await?;
    }
    let run = match &requested.run_id {
        Some(id) => Some(find::run(app, agent, id, tenant).await?),
        None => None,
    };
    match &run {
        Some(run) => work::check_user(&tenant.principal, WorkKind::Chosen, &run.user)?,
        None => work::check_everyone(&tenant.principal)?,
    }
    let error = refusal(app, agent, args, run.is_some(), tenant).await?;
    let id = || app.api.ids.next();
    let request_id = requested.request_id.clone().unwrap_or_else(id);
    let run_id = run.as_ref().map_or_else(id, |run| run.id.as_str().to_owned());
    let mut events = events(app, agent, (&run_id, &request_id), error.as_ref());
    if let Some(run) = &run {
        if error.is_none() {
            merge(app, agent, run, args, tenant).await?;
        }
        configured::publish(app, run, &request_id, &mut events).await?;
    }
    let record = ConfigureRecord { request_id, run_id, digest: requested.digest.clone(), events, seen: 0 };
    let of_agent = run.is_none() && error.is_none();
    configured::keep(app, agent, tenant, &record, |settings| {
        if of_agent {
            change(settings, args);
        }
    })
    .await?;
    Ok(record)
}

/// Returns `request_started` and `request_completed`, numbered as the first of a run.
fn events(app: &App, agent: &str, (run, request): (&str, &str), error: Option<&Value>) -> Vec<Value> {
    let at = app.api.clock.now().to_rfc3339();
    let event = |id: i64, kind: &str| {
        json!({
            "id": id,
            "run_id": run,
            "type": kind,
            "agent": agent,
            "role": "system",
            "depth": 0,
            "timestamp": at,
            "request_id": request,
        })
    };
    let (started, mut completed) = (event(1, "request_started"), event(2, "request_completed"));
    completed["finish_reason"] = if error.is_none() { "success".into() } else { "error".into() };
    completed["result"] = Value::Null;
    completed["error"] = error.cloned().unwrap_or_default();
    completed["exposes"] = json!({});
    vec![started, completed]
}

/// Returns why these settings are refused, if they are: `{code, message}`.
async fn refusal(
    app: &App,
    agent: &str,
    args: &Map<String, Value>,
    of_run: bool,
    tenant: &Tenant,
) -> Result<Option<Value>, Failure> {
    if let Some(name) = args.keys().find(|name| !SETTINGS.contains(&name.as_str())) {
        let shown: String = name.chars().take(60).collect();
        let message = format!("`{shown}` is no setting of this agent; it has {}.", SETTINGS.join(", "));
        return Ok(Some(json!({"code": "unknown_setting", "message": message})));
    }
    let fixed =
        |(name, value): &(&String, &Value)| OF_THE_BEGINNING.contains(&name.as_str()) || value.is_null();
    if let Some((name, _)) = args.iter().find(fixed).filter(|_| of_run) {
        let message = format!(
            "`{name}` cannot be changed for a run that has begun; configure the agent before it begins."
        );
        return Ok(Some(json!({"code": "fixed_setting", "message": message})));
    }
    let mut fields = RawObject::new();
    fields.insert("type", "agent.engagement");
    fields.insert("args", json!([""]));
    fields.insert("meta", json!({"agent": agent}));
    set(&mut fields, args);
    match accept(app, fields, tenant, app.api.clock.now()).await {
        Ok(_) => Ok(None),
        Err(Failure(error)) if error.status < 500 => {
            Ok(Some(json!({"code": error.code, "message": error.message.replace("ext_agent_", "")})))
        }
        Err(failure) => Err(failure),
    }
}

async fn merge(
    app: &App,
    agent: &str,
    run: &Engagement,
    args: &Map<String, Value>,
    tenant: &Tenant,
) -> Result<(), Failure> {
    let of = of(agent, Some(run), tenant);
    let runs = &app.api.store.runs;
    loop {
        let before = runs.settings(&of).await?;
        let mut merged = before.args;
        change(&mut merged, args);
        // A concurrent request may configure as well: then both are merged, the later after the earlier.
        if runs.configure(&of, before.version, merged).await? {
            return Ok(());
        }
    }
}

fn change(settings: &mut Map<String, Value>, args: &Map<String, Value>) {
    for (name, value) in args {
        if value.is_null() {
            settings.shift_remove(name);
        } else {
            settings.insert(name.clone(), value.clone());
        }
    }
}

fn of(agent: &str, run: Option<&Engagement>, tenant: &Tenant) -> Configured {
    Configured {
        agent: agent.to_owned(),
        tenant: tenant.name().map(str::to_owned),
        run: run.map(|run| run.id.clone()),
    }
}

/// Applies the configured settings to a request. The first request of a run takes the agent's settings. A later one
/// takes the run's, which began with a copy of the agent's.
///
/// # Errors
/// The error of the store.
pub(super) async fn apply(
    app: &App,
    agent: &str,
    tenant: &Tenant,
    run: Option<&Engagement>,
    fields: &mut RawObject,
) -> Result<(), Failure> {
    set(fields, &app.api.store.runs.settings(&of(agent, run, tenant)).await?.args);
    Ok(())
}

fn set(fields: &mut RawObject, settings: &Map<String, Value>) {
    for (name, value) in settings.iter().filter(|(name, _)| *name != configured::MEMBER) {
        fields.insert(format!("ext_agent_{name}"), RawJson::of(value));
    }
}
