//! ConfigureRequests as requests: their ids and their events, which are kept beside the settings of the agent.

use super::{find, run_events};
use crate::api::App;
use crate::reply::{self, Failure};
use crate::request::Tenant;
use axum::response::Response;
use axum::response::sse::{Event as Frame, Sse};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use turnstone_domain::JobId;
use turnstone_domain::engagement::Engagement;
use turnstone_ojs::OjsError;
use turnstone_store::{Configured, News, StoreError};

/// The member of an agent's settings that holds them. No setting has such a name.
pub(super) const MEMBER: &str = "@requests";
/// The newest that are kept for each agent and tenant.
const MOST: usize = 100;

/// An answered ConfigureRequest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ConfigureRecord {
    /// The client's id of it, or the server's.
    pub request_id: String,
    /// The run that it configured, or a run of its own.
    pub run_id: String,
    /// Equal for bodies with the same meaning.
    pub digest: String,
    /// Its `request_started` and its `request_completed`.
    pub events: Vec<Value>,
    /// The number up to which it was polled without `since`.
    #[serde(default)]
    pub seen: i64,
}

impl ConfigureRecord {
    /// Returns the event that ended it.
    pub fn completed(&self) -> &Value {
        self.events.last().unwrap_or(&Value::Null)
    }

    /// Returns its events after a number.
    pub fn after(&self, since: i64) -> Vec<&Value> {
        self.events.iter().filter(|event| number(event) > since).collect()
    }

    /// Returns its events after a number as a stream, which ends with the last.
    pub fn streamed(&self, since: i64) -> Response {
        let frame = |event: &Value| {
            Ok::<_, Infallible>(Frame::default().id(number(event).to_string()).data(event.to_string()))
        };
        let frames: Vec<_> = self.after(since).into_iter().map(frame).collect();
        reply::streamed(Sse::new(futures::stream::iter(frames)))
    }

    /// Returns its status, in the form of every request.
    pub fn status(&self, agent: &str) -> Value {
        let (started, completed) = (self.events.first().unwrap_or(&Value::Null), self.completed());
        json!({
            "request_id": self.request_id,
            "run_id": self.run_id,
            "agent": agent,
            "status": "completed",
            "finish_reason": completed["finish_reason"],
            "result": null,
            "exposes": {},
            "error": completed["error"],
            "created_at": started["timestamp"],
            "started_at": started["timestamp"],
            "completed_at": completed["timestamp"],
            "last_event_id": completed["id"],
        })
    }
}

fn number(event: &Value) -> i64 {
    event["id"].as_i64().unwrap_or_default()
}

fn of(agent: &str, tenant: &Tenant) -> Configured {
    Configured { agent: agent.to_owned(), tenant: tenant.name().map(str::to_owned), run: None }
}

/// Returns the records in the settings of an agent, the newest last.
fn records(settings: &Map<String, Value>) -> Vec<ConfigureRecord> {
    settings.get(MEMBER).and_then(|kept| serde_json::from_value(kept.clone()).ok()).unwrap_or_default()
}

/// Returns the request of this id, if it is one of these.
///
/// # Errors
/// The error of the store.
pub(super) async fn find(
    app: &App,
    agent: &str,
    id: &str,
    tenant: &Tenant,
) -> Result<Option<ConfigureRecord>, StoreError> {
    let settings = app.api.store.runs.settings(&of(agent, tenant)).await?;
    Ok(records(&settings.args).into_iter().find(|kept| kept.request_id == id || kept.run_id == id))
}

/// Checks that a client's id names no other request or run of the agent.
///
/// # Errors
/// 409 when it does.
pub(super) async fn check_free(app: &App, agent: &str, id: &str, tenant: &Tenant) -> Result<(), Failure> {
    let taken = find::request(app, agent, id, tenant).await.is_ok()
        || find::run(app, agent, id, tenant).await.is_ok();
    if taken {
        let message =
            format!("`{id}` is another request or a run of this agent; name the request otherwise.");
        return Err(OjsError::conflict(message).into());
    }
    Ok(())
}

/// Adds a record, and changes the agent's settings in the same write.
///
/// # Errors
/// The error of the store.
pub(super) async fn keep(
    app: &App,
    agent: &str,
    tenant: &Tenant,
    record: &ConfigureRecord,
    change: impl Fn(&mut Map<String, Value>),
) -> Result<(), StoreError> {
    rewrite(app, agent, tenant, |settings, kept| {
        change(settings);
        kept.retain(|other| other.request_id != record.request_id);
        kept.push(record.clone());
    })
    .await
}

/// Notes that a request was polled up to its end.
///
/// # Errors
/// The error of the store.
pub(super) async fn polled(
    app: &App,
    agent: &str,
    tenant: &Tenant,
    record: &ConfigureRecord,
) -> Result<(), StoreError> {
    let last = number(record.completed());
    rewrite(app, agent, tenant, |_, kept| {
        for kept in kept.iter_mut().filter(|kept| kept.request_id == record.request_id) {
            kept.seen = last;
        }
    })
    .await
}

async fn rewrite(
    app: &App,
    agent: &str,
    tenant: &Tenant,
    change: impl Fn(&mut Map<String, Value>, &mut Vec<ConfigureRecord>),
) -> Result<(), StoreError> {
    let (of, runs) = (of(agent, tenant), &app.api.store.runs);
    loop {
        let before = runs.settings(&of).await?;
        let mut kept = records(&before.args);
        let mut settings = before.args;
        change(&mut settings, &mut kept);
        let surplus = kept.len().saturating_sub(MOST);
        kept.drain(..surplus);
        settings.insert(MEMBER.to_owned(), json!(kept));
        // A concurrent request may configure as well: then both are merged, the later after the earlier.
        if runs.configure(&of, before.version, settings).await? {
            return Ok(());
        }
    }
}

/// Numbers the events within a run, and publishes them in it.
///
/// # Errors
/// The error of the store.
pub(super) async fn publish(
    app: &App,
    run: &Engagement,
    request_id: &str,
    events: &mut [Value],
) -> Result<(), StoreError> {
    let runs = &app.api.store.runs;
    loop {
        run_events::catch_up(app, run).await?;
        let position = runs.position(&run.id).await?;
        for (event, id) in events.iter_mut().zip(position.last + 1..) {
            event["id"] = id.into();
        }
        let bodies = events.iter().map(|event| (JobId(request_id.to_owned()), event.to_string())).collect();
        let news = News { events: bodies, requests: Vec::new(), marks: position.marks };
        if runs.advance(&run.id, position.last, news).await? {
            return Ok(());
        }
    }
}
