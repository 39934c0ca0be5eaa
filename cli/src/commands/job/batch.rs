//! The progress of the jobs with one tag.

use super::waiting::{Fleet, reason};
use crate::client::outage::Outage;
use crate::client::{Client, Received};
use crate::commands::Session;
use crate::commands::progress::{Line, PAUSE, Rate};
use crate::commands::since;
use crate::failure::{Exit, Failure};
use crate::output::{Format, text};
use std::process::ExitCode;
use turnstone_api::answers::BatchView;
use turnstone_domain::{Clock as _, SystemClock, Timestamp};
use turnstone_ojs::JobBody;

/// How many queries without any progress are made before it is said why.
const SILENT: u32 = 5;

/// Follows the jobs with a tag until all have ended. Ctrl-C ends the watching, not the jobs.
///
/// # Errors
/// No job has the tag, or the request fails.
pub async fn watch(tag: &str, client: &Client, session: &Session) -> anyhow::Result<ExitCode> {
    let output = session.output;
    let mut batch: Received<BatchView> = client.get(&["batches", tag], &[]).await?;
    if batch.jobs == 0 {
        let failure = Failure::new(Exit::NotFound, format!("no job has tag {}", text::line(tag)));
        return Err(failure
            .hint("`turnstone job push FILE --tag TAG` gives the jobs of a file a tag")
            .into());
    }
    let (mut line, mut rate) = (Line::new(output), Rate::begin());
    let (mut silent, mut explained, mut outage) = (0, false, Outage::default());
    while batch.open != 0 {
        line.show(&words(&batch, &mut rate), &batch)?;
        tokio::time::sleep(PAUSE).await;
        let next = match client.get(&["batches", tag], &[]).await {
            Ok(next) => next,
            // A server that restarts is tried again.
            Err(failure) if failure.is_passing() => {
                outage.begins(client, &failure);
                continue;
            }
            Err(failure) => return Err(failure.into()),
        };
        outage.is_over(client);
        silent = if next == batch { silent + 1 } else { 0 };
        if silent >= SILENT && !explained && output.format == Format::Table {
            explained = true;
            if let Some(why) = waits_for(tag, client).await {
                output.remark(&format!("still waiting: {why}"));
            }
        }
        batch = next;
    }
    line.end(&words(&batch, &mut rate), &batch)?;
    if output.format == Format::Ids {
        output.line(&text::line(tag))?;
    }
    let all = batch.states.completed == batch.jobs;
    if !all && output.format == Format::Table {
        let tag = text::line(tag);
        output.remark(&format!("those that failed: turnstone job list --tag {tag} --state discarded"));
    }
    Ok(if all { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

/// Returns what one of the waiting jobs waits for, if that is known.
async fn waits_for(tag: &str, client: &Client) -> Option<String> {
    let fleet = Fleet::ask(client).await.ok();
    for state in ["pending", "available", "retryable", "scheduled"] {
        let query = [("tag", tag.to_owned()), ("state", state.to_owned())];
        let (jobs, _): (Vec<JobBody>, _) =
            client.slices(&["ojs", "v1", "jobs"], &query, "jobs", 1).await.ok()?;
        let Some(job) = jobs.first() else { continue };
        if let Some(why) = reason(job, fleet.as_ref(), client).await.ok().flatten() {
            return Some(format!("{} waits for {why}", job.id));
        }
    }
    None
}

/// Returns the progress in one line.
fn words(batch: &BatchView, rate: &mut Rate) -> String {
    let (states, jobs, open) = (&batch.states, batch.jobs, batch.open);
    let mut parts = vec![format!("{} of {jobs} done", states.completed)];
    if states.discarded > 0 {
        let code = batch.errors.first().map(|error| format!(" ({})", error.code)).unwrap_or_default();
        parts.push(format!("{} failed{code}", states.discarded));
    }
    let pending = match (states.pending, batch.open_reviews) {
        (0, _) => None,
        (pending, 0) => Some(format!("{pending} parked")),
        (pending, reviews) => Some(format!("{pending} parked ({reviews} for reviews)")),
    };
    let counted = |jobs: u64, words: &str| (jobs > 0).then(|| format!("{jobs} {words}"));
    parts.extend(counted(states.cancelled, "cancelled"));
    parts.extend(counted(states.active, "active"));
    parts.extend(pending);
    parts.extend(counted(states.available, "waiting for a worker"));
    parts.extend(counted(states.retryable, "waiting for another attempt"));
    parts.extend(counted(states.scheduled, "scheduled"));
    parts.extend(spent(batch));
    let time = |at: &Option<String>| at.as_deref().and_then(Timestamp::parse_rfc3339);
    let first = time(&batch.first_enqueued_at);
    let elapsed = first.map(|first| SystemClock.now().since(first));
    if open > 0 {
        let left = rate.left(jobs.saturating_sub(open), open, elapsed);
        let left = left.map(|ms| format!(", about {}", since::span(ms))).unwrap_or_default();
        parts.push(format!("{open} left{left}"));
    } else if let Some((first, last)) = first.zip(time(&batch.last_ended_at)) {
        parts.push(format!("took {}", since::span(last.since(first))));
    }
    format!("{}: {}", batch.tag, parts.join(", "))
}

/// Returns the spending in words, if there is any.
fn spent(batch: &BatchView) -> Option<String> {
    let (tokens, cost) = (batch.tokens.used, &batch.cost.used);
    let priced = cost.chars().any(|digit| digit.is_ascii_digit() && digit != '0');
    (tokens > 0 || priced).then(|| match priced {
        true => format!("spent {cost} ({tokens} tokens)"),
        false => format!("spent {tokens} tokens"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::filled;
    use serde_json::{Value, json};

    fn batch(members: &Value) -> BatchView {
        let mut members = members.clone();
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
        for state in states {
            let counted = members["states"][state].as_u64().unwrap_or_default();
            members["states"][state] = counted.into();
        }
        filled(json!({"tag": "run=7", "errors": [], "open_reviews": 0}), &members)
    }

    #[test]
    fn progress_is_one_line() {
        let under_way = batch(&json!({
            "jobs": 20, "open": 9, "errors": [{"code": "TIMEOUT", "jobs": 1}], "open_reviews": 2,
            "states": {"completed": 10, "discarded": 1, "active": 3, "pending": 2, "available": 4},
            "tokens": {"used": 1200, "reserved": 0}, "cost": {"used": "0.31", "reserved": "0"},
        }));
        assert_eq!(
            words(&under_way, &mut Rate::begin()),
            "run=7: 10 of 20 done, 1 failed (TIMEOUT), 3 active, 2 parked (2 for reviews), 4 waiting for a worker, \
             spent 0.31 (1200 tokens), 9 left"
        );
        let ended = batch(&json!({
            "jobs": 2, "open": 0, "states": {"completed": 2}, "tokens": {"used": 0, "reserved": 0},
            "cost": {"used": "0.00", "reserved": "0"}, "first_enqueued_at": "2026-01-31T12:00:00Z",
            "last_ended_at": "2026-01-31T12:02:00Z",
        }));
        assert_eq!(words(&ended, &mut Rate::begin()), "run=7: 2 of 2 done, took 2m");
    }
}
