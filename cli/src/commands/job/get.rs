//! `turnstone job get`: a job with its result and errors.

use crate::client::unwrapped;
use crate::commands::Session;
use crate::output::{Format, table, text};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;

/// `turnstone job get`.
#[derive(Clone, Debug, Args)]
pub struct GetArgs {
    /// The job's id
    pub id: String,
}

/// Prints the job.
///
/// # Errors
/// There is no such job, or the server cannot be asked.
pub async fn run(args: &GetArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let job = unwrapped(session.client()?.get(&["ojs", "v1", "jobs", &args.id], &[]).await?, "job");
    let output = &session.output;
    match output.format {
        Format::Json => output.json(&job)?,
        Format::Ids => output.line(&text::line(&table::plain(&job["id"])))?,
        Format::Table => output.line(&fields(&job))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One field per line; objects and lists as indented JSON below their name.
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
    fn a_job_is_one_field_per_line_with_nested_values_indented() {
        let job = json!({ "id": "j", "state": "completed", "error": null, "args": [1, 2], "result": { "a": "x\u{202e}" }, "meta": {} });
        assert_eq!(
            fields(&job),
            "id      j\nstate   completed\nargs    [1,2]\nresult  {\n          \"a\": \"x\\u202e\"\n        }\nmeta    {}"
        );
    }
}
