//! `turnstone job get`: a job with its result and errors.

use super::waiting::{Fleet, reason};
use crate::client::Received;
use crate::client::ids::Named;
use crate::commands::Session;
use crate::output::{Format, text};
use clap::Args;
use serde_json::{Map, Value};
use std::process::ExitCode;
use turnstone_domain::error::FailureKind;
use turnstone_domain::retry::OUTAGE_ATTEMPTS;
use turnstone_domain::{JobError, JobState};
use turnstone_ojs::{FailureRecord, JobBody};

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
        output.json(&client.get::<Value>(&["ojs", "v1", "admin", "jobs", &id, "raw"], &[]).await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let job: Received<JobBody> = client.member(&["ojs", "v1", "jobs", &id], &[], "job").await?;
    match output.format {
        Format::Json => output.json(&job)?,
        Format::Ids => output.line(&text::line(&job.id))?,
        Format::Table => {
            // The job is shown even if the key may not read the rest, such as a tenant's key.
            let is_waiting = job.state == JobState::Available;
            let fleet = if is_waiting { Fleet::ask(&client).await.ok() } else { None };
            let waits_for = reason(&job, fleet.as_ref(), &client).await.ok().flatten();
            output.line(&fields(&shown(&job, waits_for)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the job with its outcome first, and nothing twice. An error is its code and its message. Earlier errors are one
/// line each. The failures replace the attempts beside the most attempts: a claim after a review or a pause is an attempt
/// too, but only failures count.
fn shown(job: &JobBody, waits_for: Option<String>) -> Map<String, Value> {
    let Ok(Value::Object(mut members)) = serde_json::to_value(job) else { return Map::new() };
    let earlier = match &job.error {
        Some(_) => job.errors.split_last().map_or(&[][..], |(_, rest)| rest),
        None => &job.errors,
    };
    let earlier: Vec<String> =
        earlier.iter().map(|error| format!("attempt {}: {}", error.attempt, said(error))).collect();
    members.shift_remove("errors");
    members.shift_remove("error");
    let mut shown: Map<String, Value> =
        ["id", "state"].into_iter().filter_map(|name| members.shift_remove_entry(name)).collect();
    shown.extend(waits_for.map(|why| ("waits for".to_owned(), why.into())));
    shown.extend(members.shift_remove_entry("result"));
    shown.extend(job.error.as_ref().map(|error| ("error".to_owned(), said(error).into())));
    if !earlier.is_empty() {
        shown.insert("earlier errors".to_owned(), earlier.join("\n").into());
    }
    shown.extend(members.into_iter().map(|(name, value)| match name.as_str() {
        "max_attempts" => ("failures".to_owned(), failures(job).into()),
        _ => (name, value),
    }));
    shown
}

fn said(error: &FailureRecord) -> String {
    format!("{}: {}", error.code, error.message)
}

/// Returns the failures that count against the most attempts. Those in an outage of the model's provider are counted
/// apart, unless the job stated a policy; an attempt that was held back is no failure.
fn failures(job: &JobBody) -> String {
    let (outages, own): (Vec<_>, Vec<_>) =
        job.errors.iter().map(error).filter(JobError::costs_a_retry).partition(JobError::is_of_an_outage);
    let most = job.max_attempts;
    match outages.len() {
        0 => format!("{} of {most}", own.len()),
        outages => format!("{} of {most}, and {outages} of {OUTAGE_ATTEMPTS} in an outage", own.len()),
    }
}

/// Reads an error record of a job, as far as it concerns the counts.
fn error(record: &FailureRecord) -> JobError {
    let kind = FailureKind::of_code(&record.code).unwrap_or(FailureKind::Tool);
    JobError { details: Box::new(record.details.clone()), ..JobError::new(kind, "") }
}

/// Returns one field per line; objects and lists as indented JSON below their name.
fn fields(fields: &Map<String, Value>) -> String {
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
            other => text::json(&other.to_string()).into_owned(),
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
    use crate::commands::job::sample;
    use serde_json::json;

    fn failed(attempt: u32, code: &str, details: Value) -> Value {
        let at = "2026-01-31T12:00:00Z";
        json!({ "attempt": attempt, "code": code, "type": "t", "message": "no", "retryable": true, "details": details,
                "occurred_at": at, "timestamp": at })
    }

    #[test]
    fn failures_and_waits_are_reported() {
        let job = sample(&json!({ "state": "pending", "attempt": 3 }));
        let shown = fields(&shown(&job, Some("review r by boss".to_owned())));
        for line in ["waits for    review r by boss", "failures     0 of 3", "attempt      3"] {
            assert!(shown.contains(line), "{shown}");
        }
    }

    #[test]
    fn failures_in_an_outage_are_counted_apart_and_refusals_not_at_all() {
        let away = failed(1, "AGENT_MODEL_UNAVAILABLE", json!({ "outage": true }));
        let counted = failed(1, "AGENT_MODEL_UNAVAILABLE", json!({}));
        let refused = failed(1, "OSSA_CIRCUIT_OPEN", json!({}));
        let held = failed(1, "RATE_LIMITED", json!({ "hold": true }));
        let job = |errors: Vec<Value>| sample(&json!({ "errors": errors }));
        assert_eq!(
            failures(&job([vec![away; 16], vec![counted.clone(), refused.clone()]].concat())),
            "1 of 3, and 16 of 25 in an outage"
        );
        assert_eq!(failures(&job(vec![counted.clone(), refused, held, counted])), "2 of 3");
    }

    #[test]
    fn the_outcome_is_first_and_earlier_errors_are_one_line_each() {
        let (first, last) = (failed(1, "A", json!({})), failed(2, "B", json!({})));
        let begins = |job: &JobBody, words: &str| {
            let shown = fields(&shown(job, None));
            assert!(shown.starts_with(words), "{shown}");
            assert_eq!(
                shown.matches("attempt 1: A").count() + shown.matches("B: no").count(),
                words.matches(": no").count()
            );
        };
        let job = sample(&json!({ "errors": [first, last], "error": last, "state": "discarded" }));
        let words = "id              j\nstate           discarded\nerror           B: no\n\
                     earlier errors  attempt 1: A: no\nspecversion     1.0";
        begins(&job, words);
        let done = sample(&json!({ "errors": [first], "state": "completed", "result": "yes" }));
        let words = "id              j\nstate           completed\nresult          yes\n\
                     earlier errors  attempt 1: A: no\nspecversion     1.0";
        begins(&done, words);
    }

    #[test]
    fn a_job_is_one_field_per_line_with_nested_values_indented() {
        let job = json!({ "id": "j", "state": "completed", "error": null, "args": [1, 2], "result": { "a": "x\u{202e}" }, "meta": {} });
        assert_eq!(
            fields(job.as_object().unwrap()),
            "id      j\nstate   completed\nargs    [1,2]\nresult  {\n          \"a\": \"x\\u202e\"\n        }\nmeta    {}"
        );
    }
}
