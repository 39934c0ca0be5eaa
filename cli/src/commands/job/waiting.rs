//! The reason why a job does not run now: the event that it is parked for, or the state of its queue.

use super::question::Question;
use crate::client::{Client, Received};
use crate::commands::budget::raise_command;
use crate::failure::Failure;
use crate::output::table::{self, Column, plain, time};
use crate::output::{Output, text};
use futures::StreamExt as _;
use serde::Deserialize as _;
use serde_json::Value;
use std::io;
use turnstone_api::answers::{AwaitedBudget, CountedQueue, State, WorkerItem, WorkerItemKind};
use turnstone_domain::JobState;
use turnstone_domain::budget::Measure;
use turnstone_domain::event::Parked;
use turnstone_ojs::JobBody;

/// How many items are queried at once.
const AT_ONCE: usize = 8;

/// The workers and the paused queues: queried once for any number of jobs.
#[derive(Debug)]
pub struct Fleet {
    workers: Vec<WorkerItem>,
    paused: Vec<String>,
}

impl Fleet {
    /// Queries the server.
    ///
    /// # Errors
    /// The request fails, or the key may not read this.
    pub async fn ask(client: &Client) -> Result<Self, Failure> {
        let (workers, _) = client.list(&["ojs", "v1", "admin", "workers"], &[], usize::MAX).await?;
        let path = ["ojs", "v1", "admin", "queues"];
        let (queues, _): (Vec<CountedQueue>, _) = client.list(&path, &[], usize::MAX).await?;
        let paused = queues.into_iter().filter(|queue| queue.paused).map(|queue| queue.name);
        Ok(Self { workers, paused: paused.collect() })
    }

    /// Returns why no worker takes an available job, if the reason is known here.
    #[must_use]
    pub fn keeps(&self, job: &JobBody) -> Option<String> {
        let queue = &job.queue;
        if self.paused.contains(queue) {
            return Some(format!("queue {queue} is paused: turnstone queue resume {queue}"));
        }
        let agent = job.engagement_id.is_some();
        if self.serves(queue, agent) {
            return None;
        }
        Some(if agent {
            format!("no worker serves queue {queue} (turnstone worker list)")
        } else {
            format!(
                "a plain job, and no worker over HTTP fetches from queue {queue}; a job for an agent has --agent or \
                 an ext_agent_* field"
            )
        })
    }

    /// Returns true if a live worker takes jobs of this queue. Turnstone's own workers run agents; plain jobs are
    /// fetched over HTTP.
    fn serves(&self, queue: &str, agent: bool) -> bool {
        let kind = if agent { WorkerItemKind::Own } else { WorkerItemKind::Http };
        self.workers.iter().any(|worker| {
            let queues = &worker.queues;
            worker.kind == kind
                && worker.state == "running"
                && (queues.is_empty() || queues.iter().any(|served| served == queue || served == "*"))
        })
    }
}

/// Returns what the job waits for, in a sentence without a full stop. `None` when it runs, has ended, or is next.
///
/// # Errors
/// The request fails.
pub async fn reason(
    job: &JobBody,
    fleet: Option<&Fleet>,
    client: &Client,
) -> Result<Option<String>, Failure> {
    let Some(state) = job.state.known() else { return Ok(None) };
    Ok(match (state, &job.waits_for) {
        (JobState::Available, _) => fleet.and_then(|fleet| fleet.keeps(job)),
        (JobState::Scheduled, _) => Some(format!("its time, {}", time(&job.scheduled_at))),
        (JobState::Retryable, _) => Some(format!("its next attempt, at {}", time(&job.next_retry_at))),
        (JobState::Pending, Some(data)) => Some(described(data, job, client).await?),
        (JobState::Pending, None) if job.workflow_id.is_some() => {
            Some("earlier steps of its workflow".to_owned())
        }
        _ => None,
    })
}

/// Returns the reason of each item, in their order.
pub async fn reasons<T>(items: &[T], reason: impl AsyncFn(&T) -> Option<String>) -> Vec<Option<String>> {
    let reason = &reason;
    let each = futures::stream::iter(items).map(|item| async move { reason(item).await });
    each.buffered(AT_ONCE).collect().await
}

/// Prints a list, with a further column of a table for the reasons when there are any.
///
/// # Errors
/// Standard output cannot be written.
pub fn list_with_reasons<T>(
    output: &Output,
    items: &[Received<T>],
    id: impl Fn(&T) -> &str,
    columns: &[Column<T>],
    reasons: &[Option<String>],
) -> io::Result<()> {
    if reasons.iter().all(Option::is_none) {
        return output.list(items, id, columns);
    }
    let mut headings = table::headings(columns);
    headings.push("WAITS FOR");
    let mut rows: Vec<Vec<String>> = items.iter().map(|item| table::cells::<T>(item, columns)).collect();
    for (row, why) in rows.iter_mut().zip(reasons) {
        row.push(why.clone().unwrap_or_default());
    }
    output.line(&table::ruled(headings, rows, output.tty))
}

async fn described(data: &Value, job: &JobBody, client: &Client) -> Result<String, Failure> {
    match Parked::deserialize(data) {
        Ok(Parked::Children { children }) => {
            Ok(text::counted(i64::try_from(children).unwrap_or(i64::MAX), "delegated job"))
        }
        Ok(Parked::Budget { .. }) => budget(job, client).await,
        Ok(Parked::Input { .. }) => input(job, client).await,
        Ok(Parked::Review { review_id: id, reviewer, .. }) => {
            Ok(format!("review {id} by {reviewer}: turnstone review show {id}"))
        }
        Ok(Parked::Reviews { reviews }) => {
            let reviews = text::counted(i64::try_from(reviews.len()).unwrap_or(i64::MAX), "review");
            Ok(format!("{reviews}: turnstone review list"))
        }
        Err(_) => Ok(plain(data)),
    }
}

async fn engagement_of(job: &JobBody, client: &Client) -> Result<State, Failure> {
    client.get(&["engagements", job.engagement_id.as_deref().unwrap_or_default()], &[]).await
}

/// Returns the question to the user, read from the engagement: reading it there counts as displaying it.
async fn input(job: &JobBody, client: &Client) -> Result<String, Failure> {
    let engagement = engagement_of(job, client).await?;
    let user = &engagement.user.id;
    Ok(match Question::of(&engagement) {
        Some(question) => format!("its user {user}: {} ({})", question.asked(), question.command()),
        None => format!("its user {user}: turnstone engagement show {}", engagement.engagement_id),
    })
}

/// Returns what the job's budget has left, what its next call may need, and the command that raises it by the difference.
async fn budget(job: &JobBody, client: &Client) -> Result<String, Failure> {
    let engagement = engagement_of(job, client).await?;
    let awaited = engagement.awaiting.as_ref().and_then(|awaiting| awaiting.budget.as_ref());
    let Some(budget) = awaited else { return Ok("a budget that was raised".to_owned()) };
    let whose = match &budget.engagement_id {
        Some(_) => "its own budget".to_owned(),
        None => format!("budget {}", budget.name),
    };
    let anew = match time(&budget.resets_at) {
        at if at.is_empty() => at,
        at => format!(", or begins anew at {at}"),
    };
    let command = raise_command(budget).map(|command| format!(": {command}")).unwrap_or_default();
    Ok(format!("{whose}{}{command}{anew}", room(budget)))
}

/// Returns what is left and what is needed, where both are known.
fn room(budget: &AwaitedBudget) -> String {
    let unit = if budget.unit == Measure::Tokens { " tokens" } else { "" };
    match budget.left.as_ref().zip(budget.needed.as_ref()) {
        Some((left, needed)) => {
            format!(" ({}{unit} left, the next call may need {})", plain(left), plain(needed))
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::job::sample;
    use serde_json::json;

    #[test]
    fn the_wait_of_a_job_is_reported() {
        let worker = |kind: &str, queues: Value| {
            let at = "2026-01-31T12:00:00Z";
            let base = json!({"id": "w", "state": "running", "active_jobs": 0, "concurrency": 1, "hostname": "h", "pid": 1,
                              "version": "1", "started_at": at, "last_heartbeat_at": at});
            crate::client::filled(base, &json!({"kind": kind, "queues": queues}))
        };
        let fleet = Fleet {
            workers: vec![worker("own", json!(["*"])), worker("http", json!(["mail"]))],
            paused: vec!["night".to_owned()],
        };
        let says = |job: Value| fleet.keeps(&sample(&job)).unwrap_or_default();
        assert!(says(json!({"queue": "night"})).contains("turnstone queue resume night"));
        assert!(says(json!({"queue": "default"})).contains("--agent"));
        assert_eq!(says(json!({"queue": "mail"})), "");
        assert_eq!(says(json!({"queue": "default", "ext_agent_engagement_id": "e"})), "");
        let no_worker = Fleet { workers: Vec::new(), paused: Vec::new() };
        let job = sample(&json!({"queue": "default", "ext_agent_engagement_id": "e"}));
        assert!(no_worker.keeps(&job).unwrap().contains("no worker serves queue default"));
    }

    #[test]
    fn numbers_stand_only_where_there_are_any() {
        let budget = json!({"name": "fleet", "unit": "money", "needed": "2.5", "left": "2", "short": "0.5", "resets_at": null,
                            "engagement_id": null});
        let mut budget: AwaitedBudget = serde_json::from_value(budget).unwrap();
        assert_eq!(room(&budget), " (2 left, the next call may need 2.5)");
        assert_eq!(raise_command(&budget).unwrap(), "turnstone budget raise fleet --cost 0.5");
        (budget.left, budget.short, budget.resets_at) = (None, None, Some("2026-01-01T00:00:00Z".to_owned()));
        assert_eq!(room(&budget), "");
        assert_eq!(raise_command(&budget).unwrap(), "turnstone budget raise fleet --cost-per-day N");
    }
}
