//! `turnstone queue show`: the jobs of a queue.

use crate::commands::Session;
use crate::output::table::plain;
use crate::output::{Format, text};
use serde_json::Value;
use std::process::ExitCode;

/// Prints the counts of a queue.
///
/// # Errors
/// The request fails.
pub async fn run(name: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let answer = client.get(&["ojs", "v1", "queues", name, "stats"], &[]).await?;
    match output.format {
        Format::Json => output.json(&answer)?,
        Format::Ids => output.line(&text::line(name))?,
        Format::Table => {
            let fields = answer["queue"].as_object();
            for (field, value) in
                fields.into_iter().flatten().filter(|(_, value)| !matches!(value, Value::Null))
            {
                output.line(&format!("{field:<12} {}", text::line(&plain(value))))?;
            }
            output.line(&format!("{:<12} {}", "depth", plain(&answer["stats"]["depth"])))?;
            let detail = client.get(&["ojs", "v1", "admin", "queues", name], &[]).await?;
            output.line(&format!("{:<12} {}", "bounds", bounds(&detail)))?;
            if detail["created_at"].is_null() && detail["depth"] == 0 && name != "default" {
                output.remark(&format!("no job was ever put into {}", text::line(name)));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the bounds of a queue.
pub(super) fn bounds(queue: &Value) -> String {
    let config = &queue["config"];
    let rate = &config["rate_limit"];
    let rate = match &rate["max_per_second"] {
        Value::Null if rate.is_object() => rate.to_string(),
        most => plain(most),
    };
    let set = [
        ("max-depth", plain(&queue["max_depth"])),
        ("concurrency", plain(&config["concurrency"])),
        ("per-second", rate),
    ];
    let set = set.into_iter().filter(|(_, value)| !value.is_empty());
    let said: Vec<String> = set.map(|(name, value)| format!("{name} {}", text::line(&value))).collect();
    if said.is_empty() { "none".to_owned() } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_bounds_are_reported() {
        let queue =
            json!({"max_depth": 5, "config": {"concurrency": 2, "rate_limit": {"max_per_second": 7}}});
        assert_eq!(bounds(&queue), "max-depth 5, concurrency 2, per-second 7");
        assert_eq!(bounds(&json!({"max_depth": null, "config": {}})), "none");
    }
}
