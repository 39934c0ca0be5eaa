//! `POST /agents` with a YAML or JSON document: 201 for a new agent, 200 for a known one, 422 with every problem.
//!
//! Engagements that run keep the definition they began with.

use super::bundle::{Bundle, BundleBody};
use super::{RegisteredAgent, Remark, address};
use crate::api::{App, Shared};
use crate::blocking;
use crate::caps;
use crate::docs;
use crate::reply::{self, Answer, Failure};
use crate::request::{Params, Raw};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, LOCATION};
use serde_json::json;
use std::collections::HashMap;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::{AgentFormat, delegation};
use turnstone_ojs::{OjsError, check_tenant};
use turnstone_specs::{NUL_RULE, Names, Problem, Severity, agent_spec};
use turnstone_store::{NewAgent, NewTenants};

/// The parameter with the tenants that an agent serves.
pub(crate) const TENANTS: &str = "tenants";

/// Registers or replaces an agent. Engagements that run keep the definition they began with.
#[utoipa::path(
    post, path = "/agents", operation_id = "register_agent", tag = "agents",
    security(("fleet" = ["operator"])),
    params(
        ("allow_unresolved" = Option<bool>, Query, description = "Take references to what is not there yet; calls of it fail until it is."),
        ("tenants" = Option<String>, Query, description = "The tenants that the agent serves, with commas between them; `*` for all. Left out, it serves the same as before, and a new agent serves all."),
    ),
    request_body(description = "A YAML or JSON document: an OpenAgentSpec agent, an OSSA manifest, or an Agent Spec flow; the flow alone, or with what it refers to.", content(
        (String = "application/yaml"),
        (BundleBody = "application/json"),
    )),
    responses(
        (status = 200, description = "The agent was known and is replaced, or is the same.", body = RegisteredAgent),
        (status = 201, description = "The agent is new.", body = RegisteredAgent),
        (status = 409, description = "There are as many agents as are allowed.", body = docs::ErrorReply),
        (status = 422, description = "The document is not a usable agent; every problem is listed.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn register(State(app): State<Shared>, params: Params, Raw(bytes): Raw) -> Answer {
    store(&app, bytes, &params, None).await
}

/// Registers the agent of a document; `name` is the name that it must have.
pub(super) async fn store(app: &App, bytes: Bytes, params: &Params, name: Option<&str>) -> Answer {
    let open = unresolved(params)?;
    let tenants = tenants(params)?;
    let source = String::from_utf8(bytes.into()).map_err(|_| OjsError {
        hint: "Send YAML or JSON in UTF-8.",
        ..OjsError::invalid_payload("The document is not UTF-8.")
    })?;
    let records = app.api.store.views.agents(None).await?;
    let kept: HashMap<String, Option<Vec<String>>> =
        records.iter().map(|record| (record.definition.name.clone(), record.tenants.clone())).collect();
    let registered: Vec<AgentDefinition> = records.into_iter().map(|record| record.definition).collect();
    let known: Vec<String> = registered.iter().map(|agent| agent.name.clone()).collect();
    let bundle = Bundle::read(source)?;
    let (mut definition, warnings, source) =
        read(app, bundle, known.clone(), (name.map(str::to_owned), open)).await?;
    if let Some(name) = name.filter(|_| definition.format == AgentFormat::AgentSpec) {
        // The name of a component may be any text, and the address that of an agent.
        name.clone_into(&mut definition.name);
    }
    if let Some(name) = name.filter(|name| *name != definition.name) {
        let message =
            format!("The document is the agent `{}`, and the address says `{name}`.", definition.name);
        return Err(OjsError::validation("name", message).into());
    }
    if let Some(problem) = turnstone_specs::reserved(&definition.name, app.api.options.reviewers.as_deref()) {
        return Err(refusal(&[problem]).into());
    }
    let is_new = !known.contains(&definition.name);
    let most = app.api.options.caps.agents;
    if is_new && known.len() >= usize::try_from(most).unwrap_or(usize::MAX) {
        return Err(caps::reached("agents", most).into());
    }
    let (name, description, format) =
        (definition.name.clone(), definition.description.clone(), definition.format.into());
    let url = address(&name);
    let circle = delegation::circle(&definition, &registered);
    let serves = match &tenants {
        NewTenants::Unchanged => kept.get(&name).cloned().flatten(),
        NewTenants::All => None,
        NewTenants::Only(names) => Some(names.clone()),
    };
    let new = NewAgent { definition, source, tenants, at: app.api.clock.now() };
    let changed = app.api.store.intake.register_agent(new).await?;
    let location = HeaderValue::from_str(&url);
    let warnings = warnings.iter().map(Remark::from).chain(circle.as_deref().map(circular)).collect();
    let path = url.clone();
    let body = RegisteredAgent { name, description, url, path, format, changed, tenants: serves, warnings };
    let mut response = reply::json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &body);
    if let Ok(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// Reads the document on a thread that may block: a hostile one can take a while.
async fn read(
    app: &App,
    bundle: Bundle,
    agents: Vec<String>,
    (name, open): (Option<String>, bool),
) -> Result<(AgentDefinition, Vec<Problem>, String), Failure> {
    let tools: Vec<String> = app.api.tools.iter().map(|tool| tool.name.clone()).collect();
    let servers = app.api.options.mcp_servers.clone();
    let keyless = app.api.options.keyless_tools.clone();
    let remote = app.api.options.remote_hosts.clone();
    let reviewers = app.api.options.reviewers.clone();
    let reach = app.api.options.reach.clone();
    let rules = app.api.options.tool_rules.clone();
    let reading = blocking::run(move || {
        let name = name.or_else(|| turnstone_specs::name_for(&bundle.document, &rules));
        let (tools, servers) = rules.visible_to(name.as_deref(), &tools, &servers);
        let keyless: Vec<&str> = keyless.iter().map(String::as_str).collect();
        let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
        let remote: Vec<&str> = remote.iter().map(String::as_str).collect();
        let reviewers: Option<Vec<&str>> =
            reviewers.as_ref().map(|names| names.iter().map(String::as_str).collect());
        let names = Names {
            tools: &tools,
            keyless: &keyless,
            servers: &servers,
            agents: &agents,
            remote: &remote,
            reviewers: reviewers.as_deref(),
            reach: reach.as_ref(),
            open,
        };
        let Bundle { document, registry, is_bundle } = bundle;
        let found = match agent_spec::is_agent_spec(&document) {
            true => agent_spec::agent(&document, &registry, Some(&names)),
            false => turnstone_specs::read(&document, Some(&names)),
        };
        found.map(|(agent, warnings)| {
            let shown = agent_spec::shown(document, &agent, &warnings, is_bundle);
            (agent, warnings, shown)
        })
    });
    reading.await?.map_err(|problems| refusal(&problems).into())
}

/// Returns true if references may name agents and tools that do not exist yet (OAS-A17).
pub(super) fn unresolved(params: &Params) -> Result<bool, Failure> {
    let read = |text: &str| match text {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    };
    Ok(params.word("allow_unresolved", read, "1, true, 0 and false")?.unwrap_or(false))
}

/// Returns the tenants that the agent is to serve.
///
/// # Errors
/// 400 when one is no name of a tenant.
fn tenants(params: &Params) -> Result<NewTenants, Failure> {
    let Some(sent) = params.text(TENANTS) else { return Ok(NewTenants::Unchanged) };
    if sent == "*" {
        return Ok(NewTenants::All);
    }
    let mut names: Vec<String> = sent.split(',').map(|name| name.trim().to_owned()).collect();
    names.sort();
    names.dedup();
    for name in &names {
        let why = "must be `*`, or names of tenants with commas between them; a name";
        check_tenant(name).map_err(|how| OjsError::invalid_request(TENANTS, format!("{why} {how}")))?;
        if name == "*" {
            return Err(OjsError::invalid_request(
                TENANTS,
                "has `*` beside names; send `*` alone for all tenants",
            )
            .into());
        }
    }
    Ok(NewTenants::Only(names))
}

pub(super) fn refusal(problems: &[Problem]) -> OjsError {
    let errors: Vec<&Problem> = problems.iter().filter(|one| one.severity == Severity::Error).collect();
    let nul = errors.iter().copied().find(|problem| problem.rule == NUL_RULE);
    let first = nul.or(errors.first().copied()).map(ToString::to_string).unwrap_or_default();
    let message = match errors.len() {
        0 | 1 => format!("The document is not a usable agent: {first}"),
        count => format!("The document has {count} errors and was not stored. The first: {first}"),
    };
    let hint = "Correct the document; `turnstone agent lint FILE` shows what does not depend on the server, and a tool that is missing is configured on the server under [tools.NAME].";
    let warnings = problems.iter().filter(|one| one.severity != Severity::Error);
    let problems: Vec<Remark> = errors.into_iter().chain(warnings).map(Remark::from).collect();
    let (status, code) = if nul.is_some() { (400, "invalid_request") } else { (422, "validation_error") };
    OjsError::new(status, code, message, hint).with("problems", json!(problems))
}

/// Agents that call one another in a cycle are legal, and end at the delegation depth (OAS-A18).
fn circular(way: &[String]) -> Remark {
    let message = format!(
        "{} is a circle; only the delegation depth and `max_jobs_per_tree` end it",
        way.join(" asks ")
    );
    Remark { line: 1, column: 1, rule: "OAS-A18".to_owned(), severity: "warning".to_owned(), message }
}

impl From<&Problem> for Remark {
    fn from(problem: &Problem) -> Self {
        let severity = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let Problem { line, column, rule, ref message, .. } = *problem;
        Self { line, column, rule: rule.to_owned(), severity: severity.to_owned(), message: message.clone() }
    }
}
