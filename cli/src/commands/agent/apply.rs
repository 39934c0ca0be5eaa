//! `turnstone agent apply`: register agents from files.

use super::ApplyArgs;
use super::problem::FoundProblem;
use crate::client::Received;
use crate::commands::{Session, several};
use crate::failure::Failure;
use crate::output::{Format, Output, text};
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use turnstone_api::answers::{RegisteredAgent, Remark};
use turnstone_specs::agent_spec;

/// Sends the files one after the other. A refused file does not keep the others out.
///
/// # Errors
/// A file cannot be read, the request fails, or an agent was refused.
pub async fn run(args: &ApplyArgs, session: &Session) -> anyhow::Result<ExitCode> {
    // All are read first, so that a mistyped name at the end does not leave half of them applied.
    let files = args.files.expanded().into_iter().collect::<Result<Vec<_>, _>>()?;
    let documents = files.iter().map(|file| super::read(file)).collect::<Result<Vec<_>, _>>()?;
    let query = &query(args)?[..];
    let registry = args.registry.as_deref().map(registry).transpose()?;
    let (parts, documents) = parted(documents);
    let client = session.client()?;
    let output = session.output;
    let mut outcome = several::Outcome::new(output);
    let mut left = documents;
    loop {
        let mut refused = Vec::new();
        let before = left.len();
        for (name, source) in left {
            let (media_type, body) = body(&source, &parts, registry.as_ref());
            match client.post_text((&["agents"], query), media_type, body).await {
                Ok(answer) => show(&name, &answer, &output)?,
                Err(failure) => refused.push((name, source, failure)),
            }
        }
        // An agent may name one that comes after it: refused files are sent again as long as that registers one more.
        if refused.is_empty() || refused.len() == before || before == 1 {
            for (name, _, failure) in refused {
                tell(&name, failure, &mut outcome, &output)?;
            }
            break;
        }
        left = refused.into_iter().map(|(name, source, _)| (name, source)).collect();
    }
    outcome.finish("files were refused")
}

/// Returns the parameters of each registration.
///
/// # Errors
/// A name of a tenant has a comma, which separates names.
fn query(args: &ApplyArgs) -> Result<Vec<(&'static str, String)>, Failure> {
    let mut query = Vec::new();
    if args.allow_unresolved {
        query.push(("allow_unresolved", "1".to_owned()));
    }
    if let Some(name) = args.tenants.iter().find(|name| name.contains([',', '*'])) {
        return Err(Failure::usage(format!("--tenant {name}: give one name, without a comma or `*`")));
    }
    if args.all_tenants {
        query.push(("tenants", "*".to_owned()));
    } else if !args.tenants.is_empty() {
        query.push(("tenants", args.tenants.join(",")));
    }
    Ok(query)
}

/// Returns the parts of Agent Spec documents, and the other documents.
fn parted(documents: Vec<(String, String)>) -> (Vec<String>, Vec<(String, String)>) {
    let (parts, whole): (Vec<_>, Vec<_>) =
        documents.into_iter().partition(|(_, source)| agent_spec::is_disaggregated(source));
    (parts.into_iter().map(|(_, source)| source).collect(), whole)
}

/// Returns what is sent for a document: with the parts and values that it may refer to when it is one of
/// Agent Spec.
fn body(source: &str, parts: &[String], registry: Option<&Value>) -> (&'static str, String) {
    let is_alone = parts.is_empty() && registry.is_none();
    if is_alone || !agent_spec::is_agent_spec(source) {
        return ("application/yaml", source.to_owned());
    }
    ("application/json", json!({"document": source, "parts": parts, "registry": registry}).to_string())
}

/// Reads the values of references.
fn registry(file: &str) -> Result<Value, Failure> {
    let (name, text) = super::read(file)?;
    let wrong = |why: String| Failure::usage(format!("{name}: {why}"));
    let values: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("not JSON: {error}")))?;
    if values.is_object() { Ok(values) } else { Err(wrong("must be a map of ids to values".to_owned())) }
}

/// Prints why a document was refused: each problem once.
fn tell(name: &str, failure: Failure, outcome: &mut several::Outcome, output: &Output) -> anyhow::Result<()> {
    let listed = failure.refusal.as_ref().map(|refusal| refusal.details["problems"].clone());
    let listed: Vec<Remark> =
        listed.and_then(|listed| serde_json::from_value(listed).ok()).unwrap_or_default();
    let problems: Vec<_> = listed.iter().map(|remark| FoundProblem::remarked(name, remark)).collect();
    problems.iter().try_for_each(|problem| problem.print(output))?;
    let errors = problems.iter().filter(|problem| problem.severity == "error").count();
    let message = match errors {
        0 => failure.message.clone(),
        1 => "not registered, because of 1 error".to_owned(),
        count => format!("not registered, because of {count} errors"),
    };
    Ok(outcome.failed(name, Failure { message, ..failure })?)
}

fn show(file: &str, answer: &Received<RegisteredAgent>, output: &Output) -> io::Result<()> {
    let agent = text::line(&answer.name);
    match output.format {
        Format::Json => output.ndjson(answer),
        Format::Ids => output.line(&agent),
        Format::Table => {
            let warnings = answer.warnings.iter().map(|remark| FoundProblem::remarked(file, remark));
            warnings.into_iter().try_for_each(|problem| problem.print(output))?;
            let what = match answer.changed {
                true => "is registered",
                false => "is registered already and unchanged",
            };
            let kept = answer.tenants.as_ref();
            let kept = kept.map(|names| format!(", for {} alone", text::line(&names.join(", "))));
            output.line(&format!("{file}: agent {agent} {what}{}", kept.unwrap_or_default()))
        }
    }
}
