//! ConfigureRequest: settings for later requests, of all runs of an agent or of one (AP-A13).
//!
//! A setting is an `ext_agent_*` field without the prefix: `temperature` is `ext_agent_temperature`. Settings are
//! checked like those of a job.

use super::find;
use super::request_types::ProtocolRequest;
use crate::api::App;
use crate::ojs::jobs::accept::accept;
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::{Map, Value, json};
use turnstone_domain::engagement::Engagement;
use turnstone_domain::{RawJson, RawObject};
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

/// Merges settings into the existing ones; `null` removes one. Returns the `request_completed` with the outcome.
///
/// # Errors
/// 404 for an unknown run, and errors of the store.
pub(super) async fn configure(
    app: &App,
    agent: &str,
    requested: &ProtocolRequest,
    args: &Map<String, Value>,
    tenant: &Tenant,
) -> Result<Value, Failure> {
    let run = match &requested.run_id {
        Some(id) => Some(find::run(app, agent, id, tenant).await?),
        None => None,
    };
    let error = match refusal(app, agent, args, run.is_some(), tenant).await? {
        Some(error) => error,
        None => {
            merge(app, agent, run.as_ref(), args, tenant).await?;
            Value::Null
        }
    };
    let reason = if error.is_null() { "success" } else { "error" };
    Ok(json!({
        "id": 0,
        "run_id": run.as_ref().map_or("", |run| run.id.as_str()),
        "type": "request_completed",
        "agent": agent,
        "role": "system",
        "depth": 0,
        "timestamp": app.api.clock.now().to_rfc3339(),
        "request_id": requested.request_id,
        "finish_reason": reason,
        "result": null,
        "error": error,
        "exposes": {},
    }))
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
    run: Option<&Engagement>,
    args: &Map<String, Value>,
    tenant: &Tenant,
) -> Result<(), Failure> {
    let of = of(agent, run, tenant);
    let runs = &app.api.store.runs;
    loop {
        let before = runs.settings(&of).await?;
        let mut merged = before.args;
        for (name, value) in args {
            if value.is_null() {
                merged.shift_remove(name);
            } else {
                merged.insert(name.clone(), value.clone());
            }
        }
        // A concurrent request may configure as well: then both are merged, the later after the earlier.
        if runs.configure(&of, before.version, merged).await? {
            return Ok(());
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
    for (name, value) in settings {
        fields.insert(format!("ext_agent_{name}"), RawJson::of(value));
    }
}
