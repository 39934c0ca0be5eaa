//! `turnstone queue show`: the jobs of a queue.

use crate::client::Received;
use crate::commands::Session;
use crate::output::table::plain;
use crate::output::{Format, text};
use serde_json::{Map, Value};
use std::process::ExitCode;
use turnstone_api::answers::{QueueDetail, QueueStats};

/// Prints the counts of a queue.
///
/// # Errors
/// The request fails.
pub async fn run(name: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let answer: Received<QueueStats> = client.get(&["ojs", "v1", "queues", name, "stats"], &[]).await?;
    match output.format {
        Format::Json => output.json(&answer)?,
        Format::Ids => output.line(&text::line(name))?,
        Format::Table => {
            let fields: Map<String, Value> = serde_json::from_value(serde_json::to_value(&answer.queue)?)?;
            for (field, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                output.line(&format!("{field:<12} {}", text::line(&plain(value))))?;
            }
            output.line(&format!("{:<12} {}", "depth", answer.stats.depth))?;
            let detail = client.get(&["ojs", "v1", "admin", "queues", name], &[]).await?;
            output.line(&format!("{:<12} {}", "bounds", bounds(&detail)))?;
            if detail.created_at.is_none() && detail.depth == 0 && name != "default" {
                output.remark(&format!("no job was ever put into {}", text::line(name)));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the bounds of a queue.
pub(super) fn bounds(queue: &QueueDetail) -> String {
    let rate = queue.config.get("rate_limit");
    let per_second = rate.and_then(|rate| rate.get("max_per_second")).map(plain);
    let rate = per_second.unwrap_or_else(|| rate.map(plain).unwrap_or_default());
    let set = [
        ("max-depth", plain(&queue.max_depth)),
        ("concurrency", queue.config.get("concurrency").map(plain).unwrap_or_default()),
        ("per-second", rate),
    ];
    let set = set.into_iter().filter(|(_, value)| !value.is_empty());
    let said: Vec<String> = set.map(|(name, value)| format!("{name} {}", text::line(&value))).collect();
    if said.is_empty() { "none".to_owned() } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::filled;
    use serde_json::json;

    #[test]
    fn all_bounds_are_reported() {
        let queue = |members: Value| {
            let mut counts = Map::new();
            let states = [
                "available",
                "active",
                "scheduled",
                "retryable",
                "pending",
                "completed",
                "cancelled",
                "discarded",
            ];
            counts.extend(states.map(|state| (state.to_owned(), 0.into())));
            let base = json!({"name": "q", "state": "active", "paused": false, "counts": counts, "depth": 0, "weight": 1});
            bounds(&filled(base, &members))
        };
        let set = json!({"max_depth": 5, "config": {"concurrency": 2, "rate_limit": {"max_per_second": 7}}});
        assert_eq!(queue(set), "max-depth 5, concurrency 2, per-second 7");
        assert_eq!(queue(json!({"max_depth": null, "config": {}})), "none");
    }
}
