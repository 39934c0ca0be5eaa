//! The reason why a job does not run now: the event that it is parked for, or the state of its queue.

use super::question::Question;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::table::{Column, column, plain, time};
use futures::StreamExt as _;
use serde_json::Value;

/// Shown when there is anything to show in it; see [`with_reasons`].
pub const WAITS_FOR: Column = column("WAITS FOR", |item| plain(&item[WAITING]));
/// The field of the reason while a table is made.
const WAITING: &str = "waits for";
/// How many items are queried at once.
const AT_ONCE: usize = 8;

/// The workers and the paused queues: queried once for any number of jobs.
#[derive(Clone, Debug)]
pub struct Fleet {
    workers: Vec<Value>,
    paused: Vec<String>,
}

impl Fleet {
    /// Queries the server.
    ///
    /// # Errors
    /// The request fails, or the key may not read this.
    pub async fn ask(client: &Client) -> Result<Self, Failure> {
        let (workers, _) = client.list(&["ojs", "v1", "admin", "workers"], &[], usize::MAX).await?;
        let (queues, _) = client.list(&["ojs", "v1", "admin", "queues"], &[], usize::MAX).await?;
        let paused = queues.iter().filter(|queue| queue["paused"] == true);
        Ok(Self { workers, paused: paused.map(|queue| plain(&queue["name"])).collect() })
    }

    /// Returns why no worker takes an available job, if the reason is known here.
    #[must_use]
    pub fn keeps(&self, job: &Value) -> Option<String> {
        let queue = plain(&job["queue"]);
        if self.paused.contains(&queue) {
            return Some(format!("queue {queue} is paused: turnstone queue resume {queue}"));
        }
        let agent = !job["ext_agent_engagement_id"].is_null();
        if self.serves(&queue, agent) {
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
        let kind = if agent { "own" } else { "http" };
        self.workers.iter().any(|worker| {
            let queues = worker["queues"].as_array().map(Vec::as_slice).unwrap_or_default();
            worker["kind"] == kind
                && worker["state"] == "running"
                && (queues.is_empty() || queues.iter().any(|served| served == queue || served == "*"))
        })
    }
}

/// Returns what the job waits for, in a sentence without a full stop. `None` when it runs, has ended, or is next.
///
/// # Errors
/// The request fails.
pub async fn reason(job: &Value, fleet: Option<&Fleet>, client: &Client) -> Result<Option<String>, Failure> {
    let held = job["held"] == true || job["paused"] == true;
    Ok(match job["state"].as_str() {
        _ if held => Some("paused by an operator".to_owned()),
        Some("available") => fleet.and_then(|fleet| fleet.keeps(job)),
        Some("scheduled") => Some(format!("its time, {}", time(&job["scheduled_at"]))),
        Some("retryable") => Some(format!("its next attempt, at {}", time(&job["next_retry_at"]))),
        Some("pending") if job["waits_for"].is_object() => {
            Some(described(&job["waits_for"], job, client).await?)
        }
        Some("pending") if !job["workflow_id"].is_null() => Some("earlier steps of its workflow".to_owned()),
        _ => None,
    })
}

/// Returns the items with the reason of each for [`WAITS_FOR`]; `None` when none of them has one.
pub async fn with_reasons(
    items: &[Value],
    reason: impl AsyncFn(&Value) -> Option<String>,
) -> Option<Vec<Value>> {
    let reason = &reason;
    let explained: Vec<Value> = futures::stream::iter(items.to_vec())
        .map(|mut item| async move {
            if let Some(why) = reason(&item).await {
                item[WAITING] = why.into();
            }
            item
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    explained.iter().any(|item| !item[WAITING].is_null()).then_some(explained)
}

async fn described(data: &Value, job: &Value, client: &Client) -> Result<String, Failure> {
    if let Some(children) = data["children"].as_i64() {
        return Ok(if children == 1 {
            "1 delegated job".to_owned()
        } else {
            format!("{children} delegated jobs")
        });
    }
    if data["kind"] == "budget" {
        return budget(data, job, client).await;
    }
    if asks_user(data) {
        return input(job, client).await;
    }
    let id = plain(&data["review_id"]);
    Ok(format!("review {id} by {}: turnstone review show {id}", plain(&data["reviewer"])))
}

/// Returns whether a job waits for an answer of its user. A review of a call's input is of the kind `input` too, and has an id.
#[must_use]
pub fn asks_user(waits_for: &Value) -> bool {
    waits_for["kind"] == "input" && waits_for["review_id"].is_null()
}

/// Returns the question to the user, read from the engagement: reading it there counts as displaying it.
async fn input(job: &Value, client: &Client) -> Result<String, Failure> {
    let id = plain(&job["ext_agent_engagement_id"]);
    let engagement = client.get(&["engagements", &id], &[]).await?;
    let user = engagement["user"]["id"].as_str().map(|user| format!(" {user}")).unwrap_or_default();
    Ok(match Question::read(&id, &engagement["awaiting"]) {
        Some(question) => format!("its user{user}: {} ({})", question.asked(), question.command()),
        None => format!("its user{user}: turnstone engagement show {id}"),
    })
}

async fn budget(data: &Value, job: &Value, client: &Client) -> Result<String, Failure> {
    let name = plain(&data["budget"]);
    let until = plain(&data["until"]);
    let anew = if until.is_empty() {
        String::new()
    } else {
        format!(", or begins anew at {}", time(&data["until"]))
    };
    if name == "engagement" {
        let id = plain(&job["ext_agent_engagement_id"]);
        let engagement = client.get(&["engagements", &id], &[]).await?;
        let tokens = &engagement["tokens"];
        let numbers = spent(&tokens["used"], &tokens["limit"], "tokens");
        return Ok(format!(
            "its own budget{numbers}: turnstone budget raise --engagement {id} --tokens N{anew}"
        ));
    }
    let shared = client.get(&["budgets", &name], &[]).await?;
    let row = &shared["rows"][0];
    let limits = &shared["limits"];
    let flag =
        ["tokens_per_day", "tokens", "cost_per_day", "cost"].into_iter().find(|flag| !limits[flag].is_null());
    let flag = flag.unwrap_or("tokens");
    let side = if flag.starts_with("tokens") { "tokens" } else { "cost" };
    let unit = if side == "tokens" { "tokens".to_owned() } else { plain(&shared["currency"]) };
    let numbers = spent(&row[side]["used"], &limits[flag], &unit);
    Ok(format!("budget {name}{numbers}: turnstone budget raise {name} --{} N{anew}", flag.replace('_', "-")))
}

fn spent(used: &Value, limit: &Value, unit: &str) -> String {
    if used.is_null() || limit.is_null() {
        return String::new();
    }
    format!(" ({} of {} {unit} spent)", plain(used), plain(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_wait_of_a_job_is_reported() {
        let worker = |kind: &str, queues: Value| json!({"kind": kind, "state": "running", "queues": queues});
        let fleet = Fleet {
            workers: vec![worker("own", json!(["*"])), worker("http", json!(["mail"]))],
            paused: vec!["night".to_owned()],
        };
        let says = |job: Value| fleet.keeps(&job).unwrap_or_default();
        assert!(says(json!({"queue": "night"})).contains("turnstone queue resume night"));
        assert!(says(json!({"queue": "default"})).contains("--agent"));
        assert_eq!(says(json!({"queue": "mail"})), "");
        assert_eq!(says(json!({"queue": "default", "ext_agent_engagement_id": "e"})), "");
        let no_worker = Fleet { workers: Vec::new(), paused: Vec::new() };
        let job = json!({"queue": "default", "ext_agent_engagement_id": "e"});
        assert!(no_worker.keeps(&job).unwrap().contains("no worker serves queue default"));
    }

    #[test]
    fn numbers_stand_only_where_there_are_any() {
        assert_eq!(spent(&json!(480), &json!(500), "tokens"), " (480 of 500 tokens spent)");
        assert_eq!(spent(&json!(480), &Value::Null, "tokens"), "");
    }
}
