//! The reason why a job does not run now: the event that it is parked for, or the state of its queue.

use super::question::Question;
use crate::client::{Client, Received};
use crate::failure::Failure;
use crate::output::table::{self, Column, plain, time};
use crate::output::{Output, text};
use futures::StreamExt as _;
use serde::Deserialize as _;
use serde_json::Value;
use std::fmt::Display;
use std::io;
use turnstone_api::answers::{BudgetView, CountedQueue, State, WorkerItem, WorkerItemKind};
use turnstone_domain::JobState;
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
        Ok(Parked::Budget { budget: name, until, .. }) => budget(&name, until.as_deref(), job, client).await,
        Ok(Parked::Input { .. }) => input(job, client).await,
        Ok(Parked::Review { review_id: id, reviewer, .. }) => {
            Ok(format!("review {id} by {reviewer}: turnstone review show {id}"))
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

async fn budget(name: &str, until: Option<&str>, job: &JobBody, client: &Client) -> Result<String, Failure> {
    let until = time(&until);
    let anew = if until.is_empty() { until } else { format!(", or begins anew at {until}") };
    if name == "engagement" {
        let State { engagement_id: id, tokens, .. } = engagement_of(job, client).await?;
        let numbers = spent(Some(tokens.used), tokens.limit, "tokens");
        return Ok(format!(
            "its own budget{numbers}: turnstone budget raise --engagement {id} --tokens N{anew}"
        ));
    }
    let shared: BudgetView = client.get(&["budgets", name], &[]).await?;
    let (limits, row) = (&shared.limits, shared.rows.first());
    let tokens = [("tokens-per-day", limits.tokens_per_day), ("tokens", limits.tokens)];
    let costs = [("cost-per-day", &limits.cost_per_day), ("cost", &limits.cost)];
    let (flag, numbers) = if let Some((flag, limit)) = tokens.into_iter().find(|(_, limit)| limit.is_some()) {
        (flag, spent(row.map(|row| row.tokens.used), limit, "tokens"))
    } else if let Some((flag, limit)) = costs.into_iter().find(|(_, limit)| limit.is_some()) {
        (flag, spent(row.map(|row| &row.cost.used), limit.as_ref(), &shared.currency))
    } else {
        ("tokens", String::new())
    };
    Ok(format!("budget {name}{numbers}: turnstone budget raise {name} --{flag} N{anew}"))
}

fn spent<T: Display>(used: Option<T>, limit: Option<T>, unit: &str) -> String {
    match used.zip(limit) {
        Some((used, limit)) => format!(" ({used} of {limit} {unit} spent)"),
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
        assert_eq!(spent(Some(480), Some(500), "tokens"), " (480 of 500 tokens spent)");
        assert_eq!(spent(Some(480), None, "tokens"), "");
    }
}
