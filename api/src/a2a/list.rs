//! `ListTasks` (A2A 1.0 §3.1.4): the tasks of an agent, those that changed last first.
//!
//! A parked task may ask its client, which is known only when it is read. So tasks that match by their jobs but are in
//! another state are left out here. A page may then have fewer tasks than it may hold, although another page follows.

use super::method::{Sender, history};
use super::rpc::RpcRefusal;
use super::task;
use crate::api::Shared;
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::{Map, Value, json};
use turnstone_domain::{EngagementId, JobState, Timestamp};
use turnstone_store::{TaskFilter, TaskPlace};

/// The default size of a page.
const PAGE: u32 = 50;
/// The largest page.
const MOST: u32 = 100;

/// Returns a page of tasks. `origin` is the address by which its client reaches this server.
pub(super) async fn tasks(
    app: &Shared,
    from: &Sender<'_>,
    origin: &str,
    params: &Map<String, Value>,
) -> Result<Value, RpcRefusal> {
    if from.who.caller.peer().is_some() {
        return Err(RpcRefusal::unsupported("Another server asks for its tasks by their ids."));
    }
    let state = text(params, "status")?.filter(|state| *state != "TASK_STATE_UNSPECIFIED");
    let size = page_size(params)?;
    let with_artifacts = flag(params, "includeArtifacts")?;
    // No conversation by default.
    let length = history(params)?.or(Some(0));
    let (states, begun) = state.map_or(Ok((Vec::new(), None)), jobs_in)?;
    let since = text(params, "statusTimestampAfter")?.map(|at| {
        let wrong = || RpcRefusal::parameter("statusTimestampAfter", "must be a time of RFC 3339");
        Timestamp::parse_rfc3339(at).ok_or_else(wrong)
    });
    let filter = TaskFilter {
        agent: from.agent.to_owned(),
        tenant: from.tenant().map(str::to_owned),
        engagement: text(params, "contextId")?.map(EngagementId::from),
        states,
        begun,
        since: since.transpose()?,
        after: text(params, "pageToken")?.map(place).transpose()?,
    };
    // One task more than is shown reveals if another page follows.
    let (mut found, total) = app.api.store.views.tasks(&filter, size + 1).await?;
    let follows = found.len() > size as usize;
    found.truncate(size as usize);
    let next = found.last().filter(|_| follows).map_or_else(String::new, |(_, place)| token(*place));
    let mut shown = Vec::with_capacity(found.len());
    for (id, _) in &found {
        let Some(job) = app.api.store.views.job(id).await? else { continue };
        let mut answer = task::shown(app, origin, &job, length).await?;
        if state.is_some_and(|wanted| answer["status"]["state"] != wanted) {
            continue;
        }
        if let Some(fields) = answer.as_object_mut().filter(|_| !with_artifacts) {
            fields.remove("artifacts");
        }
        shown.push(answer);
    }
    Ok(json!({"tasks": shown, "nextPageToken": next, "pageSize": size, "totalSize": total}))
}

/// Returns true if an agent has tasks that this tenant may see, even when the agent is no longer registered.
pub(super) async fn has_tasks(app: &Shared, agent: &str, tenant: &Tenant) -> Result<bool, Failure> {
    let filter = TaskFilter {
        agent: agent.to_owned(),
        tenant: tenant.name().map(str::to_owned),
        engagement: None,
        states: Vec::new(),
        begun: None,
        since: None,
        after: None,
    };
    Ok(!app.api.store.views.tasks(&filter, 1).await?.0.is_empty())
}

/// Returns the states of jobs whose tasks may be in this state, and whether those have begun.
fn jobs_in(state: &str) -> Result<(Vec<JobState>, Option<bool>), RpcRefusal> {
    use JobState::{Active, Available, Cancelled, Completed, Discarded, Pending, Retryable, Scheduled};
    Ok(match state {
        "TASK_STATE_SUBMITTED" => (vec![Scheduled, Available, Pending], Some(false)),
        "TASK_STATE_WORKING" => (vec![Scheduled, Available, Retryable, Pending, Active], Some(true)),
        "TASK_STATE_INPUT_REQUIRED" => (vec![Pending], Some(true)),
        "TASK_STATE_COMPLETED" => (vec![Completed], None),
        "TASK_STATE_FAILED" => (vec![Discarded], None),
        "TASK_STATE_CANCELED" => (vec![Cancelled], None),
        // No task is ever in these states: the combination matches none.
        "TASK_STATE_REJECTED" | "TASK_STATE_AUTH_REQUIRED" => (vec![Active], Some(false)),
        _ => {
            return Err(RpcRefusal::parameter(
                "status",
                "must be a state of a task, such as TASK_STATE_WORKING",
            ));
        }
    })
}

fn page_size(params: &Map<String, Value>) -> Result<u32, RpcRefusal> {
    let size = match params.get("pageSize") {
        None | Some(Value::Null) => Some(PAGE),
        Some(size) => size.as_u64().and_then(|size| u32::try_from(size).ok()),
    };
    let wrong = || RpcRefusal::parameter("pageSize", &format!("must be a whole number from 1 to {MOST}"));
    size.filter(|size| (1..=MOST).contains(size)).ok_or_else(wrong)
}

fn flag(params: &Map<String, Value>, name: &str) -> Result<bool, RpcRefusal> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(RpcRefusal::parameter(name, "must be true or false")),
    }
}

/// Reads a text; an empty one counts as absent, as in protobuf.
fn text<'p>(params: &'p Map<String, Value>, name: &str) -> Result<Option<&'p str>, RpcRefusal> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(RpcRefusal::parameter(name, "must be a text")),
    }
}

fn token(place: TaskPlace) -> String {
    format!("{}-{}", place.changed_at.0, place.position)
}

fn place(token: &str) -> Result<TaskPlace, RpcRefusal> {
    let read = || {
        let (at, position) = token.rsplit_once('-')?;
        Some(TaskPlace { changed_at: Timestamp(at.parse().ok()?), position: position.parse().ok()? })
    };
    read().ok_or_else(|| RpcRefusal::parameter("pageToken", "must be the nextPageToken of the page before"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_place() {
        let at = TaskPlace { changed_at: Timestamp(1_700_000_000_123), position: 42 };
        assert_eq!(place(&token(at)).unwrap(), at);
        for wrong in ["", "x", "1", "1-x", "x-1"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_parameter_is_refused() {
        let of = |value: Value| value.as_object().cloned().unwrap();
        for size in [json!(0), json!(101), json!("5"), json!(-1), json!(1.5)] {
            assert!(page_size(&of(json!({"pageSize": size}))).is_err(), "{size}");
        }
        assert_eq!(page_size(&of(json!({}))).unwrap(), PAGE);
        assert!(jobs_in("working").is_err() && flag(&of(json!({"x": 1})), "x").is_err());
        assert!(text(&of(json!({"x": 1})), "x").is_err());
    }
}
