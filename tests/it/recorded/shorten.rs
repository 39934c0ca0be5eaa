//! Recordings without repetitions: each view of the same rows is recorded as its difference from the first one.

use super::alike::{beyond, grouped, rows_beyond};
use super::collect::{CALLS, CHECKPOINTS, CLOUD, MESSAGES, OWN};
use serde_json::{Map, Value, json};
use turnstone_domain::AgentDefinition;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Replaces each view that repeats another one by its difference from it.
pub fn shorten(all: &mut Value) {
    shorten_jobs(all);
    let engagements = all["of engagements"].clone();
    for (id, pages) in all["of jobs"].as_object_mut().into_iter().flatten() {
        let engagement = text(&pages["GET "]["job"]["ext_agent_engagement_id"]);
        if let Some(events) = engagements[engagement][OWN]["events"].as_array() {
            let of_job = events.iter().filter(|event| event["job_id"] == id.as_str()).cloned();
            let reported = pages[OWN]["events"].as_array().cloned().unwrap_or_default();
            pages[OWN]["events"] = rows_beyond(&reported, &of_job.collect::<Vec<_>>());
        }
    }
    let mut phases = Map::new();
    for (_, pages) in all["of engagements"].as_object_mut().into_iter().flatten() {
        shorten_engagement(pages, &mut phases);
    }
}

/// A job's own page has the job twice, and lists and answers have it again.
fn shorten_jobs(all: &mut Value) {
    let jobs = all["of jobs"].clone();
    let of_job = |shown: &Value| beyond(shown, &jobs[text(&shown["id"])]["GET "]["job"]);
    if let Some(items) = all["listed_jobs"]["items"].as_array_mut() {
        items.iter_mut().for_each(|shown| *shown = json!([shown["id"], of_job(shown)]));
    }
    for step in all["steps"].as_array_mut().into_iter().flatten() {
        let is_known = |shown: &&mut Value| jobs.get(text(&shown["id"])).is_some();
        if let Some(shown) = step["answer"].get_mut("job").filter(is_known) {
            *shown = json!([shown["id"], of_job(shown)]);
        }
        let bare = json!({"id": step["answer"]["id"]});
        if jobs.get(text(&bare["id"])).is_some() {
            let mut shown = step["answer"].clone();
            let job = shown.as_object_mut().unwrap().shift_remove("job");
            step["answer"] = json!({"job": job, "bare": [bare["id"], of_job(&shown)]});
        }
    }
    for (_, pages) in all["of jobs"].as_object_mut().into_iter().flatten() {
        if let Some(job) = pages["GET "].as_object_mut().unwrap().shift_remove("job") {
            pages["GET "] = json!({"bare": beyond(&pages["GET "], &job), "job": job});
        }
    }
}

/// Shortens the pages of an engagement; `phases` has the last checkpoint of each phase so far.
fn shorten_engagement(pages: &mut Value, phases: &mut Map<String, Value>) {
    let rows = |page: &Value| page.as_array().cloned().unwrap_or_default();
    let own = rows(&pages[OWN]["events"]);
    if let Some(reported) = pages[CLOUD]["events"].as_array() {
        let same: Vec<Value> = own.iter().map(as_cloud_event).collect();
        pages[CLOUD]["events"] = rows_beyond(&without_cursors(reported), &same);
    }
    let mut names = Map::new();
    let events = own.iter().map(|event| {
        let kind = format!("{} {}", text(&event["name"]), text(&event["data"]["phase"]));
        beyond_last(event, "data", kind, &mut names)
    });
    pages[OWN]["events"] = grouped(&events.collect::<Vec<_>>(), &["at", "engagement_id", "job_id", "turn"]);
    let checkpoints = rows(&pages[CHECKPOINTS]["checkpoints"]).into_iter().map(|checkpoint| {
        let phase = text(&checkpoint["phase"]).to_owned();
        beyond_last(&checkpoint, "body", phase, phases)
    });
    let each = ["at", "job_id", "turn", "duration_ms", "cost", "tokens_cached"];
    pages[CHECKPOINTS]["checkpoints"] = grouped(&checkpoints.collect::<Vec<_>>(), &each);
    pages["GET /cost"] = beyond(&pages["GET /cost"], &pages["GET /audit"]["cost"]);
    if pages[CALLS]["tool_calls"].is_array() {
        let attempts = rows(&pages["GET /audit"]["attempts"]);
        pages[CALLS]["tool_calls"] = rows_beyond(&rows(&pages[CALLS]["tool_calls"]), &attempts);
    }
    let numbers = ["cost", "duration_ms", "job_id", "runs", "tokens_cached", "tokens_in", "tokens_out"];
    for (page, part, each) in [
        ("GET /audit", "/cost/phases", &numbers[..]),
        ("GET /audit", "/cost/tools", &numbers[..]),
        (MESSAGES, "/messages", &["created_at", "turn"][..]),
        ("Agent Protocol", "", &["agent", "depth", "request_id", "run_id", "timestamp"][..]),
    ] {
        if let Some(reported) =
            pages.get_mut(page).and_then(|page| page.pointer_mut(part)).filter(|reported| reported.is_array())
        {
            *reported = grouped(&rows(reported), each);
        }
    }
    if let Some(agent) = pages["GET /export"].pointer_mut("/job/0/engagement/agent") {
        let plain = serde_json::to_value(AgentDefinition::default()).unwrap();
        *agent = json!({"beyond a plain agent": beyond(agent, &plain)});
    }
}

/// Returns a row with this member by its difference from the last row of the same kind.
fn beyond_last(row: &Value, member: &str, kind: String, last: &mut Map<String, Value>) -> Value {
    let mut reported = row.clone();
    if let Some(last) = last.get(&kind).filter(|_| row[member].is_object()) {
        let members = reported.as_object_mut().unwrap();
        members.shift_remove(member);
        members.insert(format!("{member} beyond the last"), beyond(&row[member], last));
    }
    last.insert(kind, row[member].clone());
    reported
}

fn without_cursors(events: &[Value]) -> Vec<Value> {
    let mut events = events.to_vec();
    for event in &mut events {
        event.as_object_mut().unwrap().shift_remove("id");
    }
    events
}

/// Returns an event with its members where a CloudEvent has them.
fn as_cloud_event(event: &Value) -> Value {
    let mut data = event["data"].clone();
    for name in ["job_id", "engagement_id", "turn"] {
        data[name] = event[name].clone();
    }
    json!({"type": event["name"], "time": event["at"], "data": data})
}
