//! `turnstone job get`: a job with its result and errors.

use super::waiting::{Fleet, reason};
use crate::client::ids::Named;
use crate::client::unwrapped;
use crate::commands::Session;
use crate::output::{Format, table, text};
use clap::Args;
use serde_json::{Map, Value};
use std::process::ExitCode;
use turnstone_domain::JobError;
use turnstone_domain::error::FailureKind;
use turnstone_domain::retry::OUTAGE_ATTEMPTS;

/// `turnstone job get`.
#[derive(Clone, Debug, Args)]
pub struct GetArgs {
    /// The job's id, or its first characters
    pub id: String,
    /// Print the rows of the job as they are stored, whether they can be read or not (JSON; for operators)
    #[arg(long)]
    pub raw: bool,
}

/// Prints the job.
///
/// # Errors
/// There is no such job, or the request fails.
pub async fn run(args: &GetArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let client = session.client()?;
    let output = &session.output;
    let id = client.whole_id(Named::Job, &args.id).await?;
    if args.raw {
        output.json(&client.get(&["ojs", "v1", "admin", "jobs", &id, "raw"], &[]).await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let job = unwrapped(client.get(&["ojs", "v1", "jobs", &id], &[]).await?, "job");
    match output.format {
        Format::Json => output.json(&job)?,
        Format::Ids => output.line(&text::line(&table::plain(&job["id"])))?,
        Format::Table => {
            // The job is shown even if the key may not read the rest, such as a tenant's key.
            let fleet = if job["state"] == "available" { Fleet::ask(&client).await.ok() } else { None };
            let waits_for = reason(&job, fleet.as_ref(), &client).await.ok().flatten();
            output.line(&fields(&folded(&with_wait(&job, waits_for))))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the job with its reason for waiting and its failures. The failures replace the attempts beside the most
/// attempts: a claim after a review or a pause is an attempt too, but only failures count.
fn with_wait(job: &Value, waits_for: Option<String>) -> Value {
    let Some(fields) = job.as_object() else { return job.clone() };
    let mut shown = Map::new();
    for (name, value) in fields {
        if name == "max_attempts" {
            shown.insert("failures".to_owned(), failures(job, value).into());
            continue;
        }
        shown.insert(name.clone(), value.clone());
        if let (Some(why), "state") = (&waits_for, name.as_str()) {
            shown.insert("waits for".to_owned(), why.as_str().into());
        }
    }
    Value::Object(shown)
}

/// The fields that are shown first.
const FIRST: [&str; 6] = ["id", "state", "waits for", "result", "error", "errors"];

/// Returns the job with its outcome first, and nothing twice. An error is its code and its message. Earlier errors are one
/// line each.
fn folded(job: &Value) -> Value {
    let mut shown = Map::new();
    for name in FIRST.into_iter().filter(|name| !job[*name].is_null()) {
        let value = match name {
            "error" => said(&job[name]).into(),
            "errors" => {
                let all = job[name].as_array().map(Vec::as_slice).unwrap_or_default();
                let earlier =
                    if job["error"].is_null() { all } else { all.split_last().map_or(all, |(_, rest)| rest) };
                if earlier.is_empty() {
                    continue;
                }
                let lines =
                    earlier.iter().map(|error| format!("attempt {}: {}", error["attempt"], said(error)));
                Value::String(lines.collect::<Vec<_>>().join("\n"))
            }
            _ => job[name].clone(),
        };
        shown.insert(if name == "errors" { "earlier errors" } else { name }.to_owned(), value);
    }
    let rest = job.as_object().into_iter().flatten().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    shown.extend(rest.map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(shown)
}

fn said(error: &Value) -> String {
    format!("{}: {}", table::plain(&error["code"]), table::plain(&error["message"]))
}

/// Returns the failures that count against the most attempts. Those in an outage of the model's provider are counted
/// apart, unless the job stated a policy; an attempt that was held back is no failure.
fn failures(job: &Value, most: &Value) -> String {
    let errors = job["errors"].as_array().into_iter().flatten().map(error);
    let (outages, own): (Vec<_>, Vec<_>) =
        errors.filter(JobError::costs_a_retry).partition(JobError::is_of_an_outage);
    match outages.len() {
        0 => format!("{} of {most}", own.len()),
        outages => format!("{} of {most}, and {outages} of {OUTAGE_ATTEMPTS} in an outage", own.len()),
    }
}

/// Reads an error record of a job, as far as it concerns the counts.
fn error(record: &Value) -> JobError {
    let kind = record["code"].as_str().and_then(FailureKind::of_code).unwrap_or(FailureKind::Tool);
    let details = record["details"].as_object().cloned().unwrap_or_default();
    JobError { details: Box::new(details), ..JobError::new(kind, "") }
}

/// Returns one field per line; objects and lists as indented JSON below their name.
fn fields(job: &Value) -> String {
    let Some(fields) = job.as_object() else { return text::block(&job.to_string()).into_owned() };
    let widest = fields.keys().map(|name| text::width(&text::line(name))).max().unwrap_or(0);
    let lines = fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
        let name = text::line(name);
        let indent = widest + 2;
        let shown = match value {
            Value::String(text) => text::block(text).into_owned(),
            Value::Array(list) if list.iter().any(|item| item.is_object() || item.is_array()) => {
                pretty(value)
            }
            Value::Object(map) if !map.is_empty() => pretty(value),
            other => other.to_string(),
        };
        let gap = " ".repeat(indent - text::width(&name));
        format!("{name}{gap}{}", shown.trim_end().replace('\n', &format!("\n{}", " ".repeat(indent))))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn pretty(value: &Value) -> String {
    text::json(&serde_json::to_string_pretty(value).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn failures_and_waits_are_reported() {
        let job = json!({ "state": "pending", "attempt": 3, "max_attempts": 3 });
        let shown = fields(&with_wait(&job, Some("review r by boss".to_owned())));
        for line in ["waits for  review r by boss", "failures   0 of 3", "attempt    3"] {
            assert!(shown.contains(line), "{shown}");
        }
    }

    #[test]
    fn failures_in_an_outage_are_counted_apart_and_refusals_not_at_all() {
        let error = |code: &str, details: Value| json!({ "code": code, "details": details });
        let away = error("AGENT_MODEL_UNAVAILABLE", json!({ "outage": true }));
        let counted = error("AGENT_MODEL_UNAVAILABLE", json!({}));
        let refused = error("OSSA_CIRCUIT_OPEN", json!({}));
        let held = error("RATE_LIMITED", json!({ "hold": true }));
        let job = |errors: Vec<Value>| json!({ "errors": errors });
        let most = json!(3);
        assert_eq!(
            failures(&job([vec![away; 16], vec![counted.clone(), refused.clone()]].concat()), &most),
            "1 of 3, and 16 of 25 in an outage"
        );
        assert_eq!(failures(&job(vec![counted.clone(), refused, held, counted]), &most), "2 of 3");
    }

    #[test]
    fn the_outcome_is_first_and_earlier_errors_are_one_line_each() {
        let error = |attempt: u32, code: &str| json!({ "attempt": attempt, "code": code, "message": "no" });
        let (first, last) = (error(1, "A"), error(2, "B"));
        let job =
            json!({ "id": "j", "queue": "q", "errors": [first, last], "error": last, "state": "discarded" });
        assert_eq!(
            fields(&folded(&job)),
            "id              j\nstate           discarded\nerror           B: no\nearlier errors  attempt 1: A: no\n\
             queue           q"
        );
        let done =
            json!({ "id": "j", "queue": "q", "errors": [first], "state": "completed", "result": "yes" });
        assert_eq!(
            fields(&folded(&done)),
            "id              j\nstate           completed\nresult          yes\nearlier errors  attempt 1: A: no\n\
             queue           q"
        );
    }

    #[test]
    fn a_job_is_one_field_per_line_with_nested_values_indented() {
        let job = json!({ "id": "j", "state": "completed", "error": null, "args": [1, 2], "result": { "a": "x\u{202e}" }, "meta": {} });
        assert_eq!(
            fields(&job),
            "id      j\nstate   completed\nargs    [1,2]\nresult  {\n          \"a\": \"x\\u202e\"\n        }\nmeta    {}"
        );
    }
}
