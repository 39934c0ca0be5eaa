//! Everything that the API answers about the jobs and engagements of a fleet.

use super::alike::{beyond, rows_beyond};
use super::stage::Stage;
use reqwest::Method;
use serde_json::{Map, Value, json};
use turnstone_domain::EventName;
use turnstone_domain::record::EngagementRecord;
use turnstone_tests::wait;
use turnstone_worker::rerun;

/// Pages of the whole fleet, each with the name under which it is recorded.
const PAGES: [(&str, &str); 6] = [
    ("engagements", "/engagements?limit=200"),
    ("reviews", "/reviews?per_page=100"),
    ("budgets", "/budgets"),
    ("costs", "/costs"),
    ("dead_letters", "/ojs/v1/dead-letter?limit=100"),
    ("listed_jobs", "/ojs/v1/admin/jobs?per_page=100"),
];
/// The pages of events and checkpoints.
pub const OWN: &str = "GET /events?limit=1000";
pub const CLOUD: &str = "GET /events?limit=1000&format=cloudevents";
pub const CALLS: &str = "GET /tool-calls?limit=200";
pub const MESSAGES: &str = "GET /messages?limit=1000";
pub const CHECKPOINTS: &str = "GET /checkpoints?bodies=true&per_page=100";
/// The queue whose event is the last one of the feed.
const LAST: &str = "last";
/// Pages of a job, below its path.
const OF_JOB: [&str; 2] = ["", OWN_PART];
/// Further pages of a plain job; an agent's job only repeats them.
const OF_PLAIN_JOB: [&str; 2] = ["/progress", "/result"];
const OWN_PART: &str = "/events?limit=1000";
/// Pages of an engagement, below its path.
const OF_ENGAGEMENT: [&str; 10] = [
    "",
    "/events?limit=1000",
    "/events?limit=1000&format=cloudevents",
    "/messages?limit=1000",
    "/checkpoints?bodies=true&per_page=100",
    "/tool-calls?limit=200",
    "/state",
    "/audit",
    "/cost",
    "/artifacts",
];

/// Returns every answer about every job and engagement, in the order in which the jobs were made.
pub async fn everything(stage: &Stage) -> Value {
    let mut all = Map::new();
    let listed = stage.fleet.get("/ojs/v1/admin/jobs?per_page=100&order=asc").await;
    let mut jobs = Vec::new();
    let mut engagements: Vec<(String, String, Vec<String>)> = Vec::new();
    for job in listed["items"].as_array().unwrap() {
        let id = text(&job["id"]);
        if let Some(engagement) = job["ext_agent_engagement_id"].as_str() {
            match engagements.iter_mut().find(|(known, ..)| known == engagement) {
                Some((_, _, inputs)) => inputs.push(id.clone()),
                None => engagements.push((
                    engagement.to_owned(),
                    agent_of(stage, engagement).await,
                    vec![id.clone()],
                )),
            }
        }
        jobs.push(id);
    }
    all.insert("job_ids".to_owned(), json!(jobs));
    let ids: Vec<&str> = engagements.iter().map(|(id, ..)| id.as_str()).collect();
    all.insert("engagement_ids".to_owned(), json!(ids));
    let mut of_jobs = Map::new();
    for id in &jobs {
        let path = format!("/ojs/v1/jobs/{id}");
        let mut pages_of_job = pages(stage, &path, &OF_JOB).await;
        if pages_of_job["GET "]["ext_agent_engagement_id"].is_null() {
            pages_of_job.extend(pages(stage, &path, &OF_PLAIN_JOB).await);
        }
        of_jobs.insert(id.clone(), Value::Object(pages_of_job));
    }
    let mut of_engagements = Map::new();
    for (id, agent, inputs) in &engagements {
        let mut pages = pages(stage, &format!("/engagements/{id}"), &OF_ENGAGEMENT).await;
        artifacts(stage, &mut pages).await;
        export(stage, id, &mut pages).await;
        if !agent.is_empty() {
            protocols(stage, id, agent, inputs, &mut pages).await;
        }
        of_engagements.insert(id.clone(), Value::Object(pages));
    }
    all.insert("of engagements".to_owned(), Value::Object(of_engagements));
    all.insert("of jobs".to_owned(), Value::Object(of_jobs));
    for (name, path) in PAGES {
        all.insert(name.to_owned(), answer(stage, path).await);
    }
    feed_is_complete(stage).await;
    let names = EventName::ALL.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(",");
    all.insert("feed".to_owned(), feed(stage, &all, &names).await);
    all.insert("feed of OSSA".to_owned(), feed(stage, &all, "io.ossa.*").await);
    Value::Object(all)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

async fn agent_of(stage: &Stage, engagement: &str) -> String {
    let seen = stage.fleet.get(&format!("/engagements/{engagement}")).await;
    let agent = text(&seen["agent"]);
    let (status, _) = stage.unrecorded(Method::GET, &format!("/agents/{agent}"), &[], String::new()).await;
    if status == 200 { agent } else { String::new() }
}

/// Returns the body of a page, and the status beside it when the page is refused.
async fn answer(stage: &Stage, path: &str) -> Value {
    let (status, mut body) = stage.unrecorded(Method::GET, path, &[], String::new()).await;
    timeless(&mut body);
    if status == 200 { body } else { json!({"status": status, "answer": body}) }
}

/// Replaces durations, which are measured in real time and not by the paused clock.
pub fn timeless(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(timeless),
        Value::Object(members) => {
            // It holds the random identity of a commit.
            members.shift_remove("cursor_id");
            for (name, member) in members {
                match name.as_str() {
                    "duration_ms" | "latency_ms" if member.is_number() => *member = json!("<ms>"),
                    // Each server has a key of its own.
                    "key_id" if member.is_string() => *member = json!("<key>"),
                    _ => timeless(member),
                }
            }
        }
        _ => {}
    }
}

async fn pages(stage: &Stage, below: &str, parts: &[&str]) -> Map<String, Value> {
    let mut pages = Map::new();
    for part in parts {
        pages.insert(format!("GET {part}"), answer(stage, &format!("{below}{part}")).await);
    }
    pages
}

async fn artifacts(stage: &Stage, pages: &mut Map<String, Value>) {
    let listed = pages["GET /artifacts"]["artifacts"].clone();
    for artifact in listed.as_array().into_iter().flatten() {
        let url = text(&artifact["url"]);
        pages.insert(format!("GET {url}"), answer(stage, &url).await);
    }
}

/// Adds the exported document line by line, and the result of its replay.
async fn export(stage: &Stage, engagement: &str, pages: &mut Map<String, Value>) {
    let path = format!("/engagements/{engagement}/export");
    let (status, body) = stage.unrecorded(Method::GET, &path, &[], String::new()).await;
    let Value::String(document) = &body else {
        pages.insert("GET /export".to_owned(), json!({"status": status, "answer": body}));
        return;
    };
    pages.insert("GET /export".to_owned(), exported(document, pages));
    let record = EngagementRecord::read(document).unwrap();
    let again = match rerun(&record).await {
        Ok(reported) => {
            let difference = reported.difference.map(|found| format!("{found:?}"));
            json!({"turns": reported.turns, "phases": reported.phases, "difference": difference})
        }
        Err(error) => json!({"error": error.to_string()}),
    };
    pages.insert("run again".to_owned(), again);
}

/// Returns the lines of a document by their kind. Rows that are in a page of the engagement are recorded as their
/// difference from it.
fn exported(document: &str, pages: &Map<String, Value>) -> Value {
    let mut reported = Map::new();
    let mut order: Vec<(String, usize)> = Vec::new();
    for line in document.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        timeless(&mut line);
        if let Some(foot) = line.get_mut("sha256") {
            // The digest covers random ids. Reading the document checks it.
            *foot = json!("<sha256>");
        }
        if let Some(signature) = line.get_mut("signature") {
            // Each server has a key of its own.
            *signature = json!("<signature>");
        }
        let members = line.as_object().unwrap();
        let (kind, row) = match members.iter().next() {
            Some((kind, row)) if members.len() == 1 => (kind.clone(), row.clone()),
            _ => ("head and foot".to_owned(), line.clone()),
        };
        match order.last_mut() {
            Some((same, count)) if *same == kind => *count += 1,
            _ => order.push((kind.clone(), 1)),
        }
        reported.entry(kind).or_insert_with(|| json!([])).as_array_mut().unwrap().push(row);
    }
    for (kind, page, member) in [
        ("checkpoint", CHECKPOINTS, "checkpoints"),
        ("message", MESSAGES, "messages"),
        ("call", CALLS, "tool_calls"),
        ("event", OWN, "events"),
    ] {
        if let (Some(Value::Array(rows)), Some(others)) = (reported.get(kind), pages[page][member].as_array())
        {
            let beyond = rows_beyond(rows, others);
            reported.insert(kind.to_owned(), beyond);
        }
    }
    reported.insert("lines".to_owned(), json!(order));
    Value::Object(reported)
}

/// Adds the views of the Agent Protocol and of A2A.
async fn protocols(
    stage: &Stage,
    engagement: &str,
    agent: &str,
    inputs: &[String],
    pages: &mut Map<String, Value>,
) {
    let path = format!("/agents/{agent}/getevents/{engagement}");
    pages.insert("Agent Protocol".to_owned(), answer(stage, &path).await);
    for job in inputs {
        let path = format!("/agents/{agent}/request/{job}");
        pages.insert(format!("Agent Protocol, {job}"), answer(stage, &path).await);
        let params = json!({"id": job, "historyLength": 100});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": params});
        let headers = [("a2a-version", "1.0")];
        let (_, mut task) =
            stage.unrecorded(Method::POST, &format!("/a2a/{agent}"), &headers, call.to_string()).await;
        timeless(&mut task);
        pages.insert(format!("A2A, {job}"), task);
    }
}

/// Pauses an unused queue, and waits until the feed has this event. The feed then has every event before it, too.
async fn feed_is_complete(stage: &Stage) {
    let path = format!("/ojs/v1/queues/{LAST}/pause");
    let (status, answer) = stage.unrecorded(Method::POST, &path, &[], "{}".to_owned()).await;
    assert_eq!(status, 200, "{answer:#}");
    wait::until("the feed has the last event", async || {
        let paused = stage.fleet.get("/ojs/v1/events?types=queue.paused").await;
        paused["events"].as_array().unwrap().iter().any(|event| event["subject"] == LAST)
    })
    .await;
}

/// Returns the feed of these types, by the streams of their events. An event that is in the page of its engagement is
/// recorded by its place there.
///
/// The stores differ in two ways, both of which the feed allows. Cursors are numbers of their own, and PostgreSQL
/// orders the events of one transaction by stream, SQLite as they were written. So the order is recorded within each
/// stream only.
async fn feed(stage: &Stage, all: &Map<String, Value>, types: &str) -> Value {
    let path = format!("/ojs/v1/events?types={types}&limit=1000");
    let events = answer(stage, &path).await["events"].as_array().cloned().unwrap();
    let events = events.into_iter().filter(|event| event["subject"] != LAST);
    let places = places(all);
    let reported = events.map(|mut event| {
        let id = text(&event["id"]);
        event.as_object_mut().unwrap().shift_remove("id");
        let shown = match places.iter().find(|place| place.cursor == id) {
            Some(place) => json!({"in": place.page, "event": place.number, "beyond": place.beyond(&event)}),
            None => event.clone(),
        };
        let stream = if shown["in"].is_string() { &shown["in"] } else { &event["subject"] };
        (text(stream), shown)
    });
    let mut by_stream: Map<String, Value> = Map::new();
    for (stream, shown) in reported {
        let events = by_stream.entry(stream).or_insert_with(|| json!([]));
        events.as_array_mut().unwrap().push(shown);
    }
    let in_rows = |events: Value| in_rows(events.as_array().cloned().unwrap_or_default().into_iter());
    Value::Object(by_stream.into_iter().map(|(stream, events)| (stream, in_rows(events))).collect())
}

/// Groups consecutive events of a page with the same difference from it.
fn in_rows(events: impl Iterator<Item = Value>) -> Value {
    let mut rows: Vec<Value> = Vec::new();
    for event in events {
        let number = event["event"].as_u64();
        let follows = rows.last().is_some_and(|last| {
            number.is_some()
                && last["to"].as_u64().map(|to| to + 1) == number
                && last["in"] == event["in"]
                && last["beyond"] == event["beyond"]
        });
        match rows.last_mut() {
            Some(last) if follows => last["to"] = json!(number),
            _ if number.is_some() => {
                rows.push(
                    json!({"in": event["in"], "from": number, "to": number, "beyond": event["beyond"]}),
                );
            }
            _ => rows.push(event),
        }
    }
    Value::Array(rows)
}

/// An event in the page of its engagement.
struct Place {
    /// Its cursor in the feed.
    cursor: String,
    /// The engagement.
    page: String,
    /// Its number in the page, from 1.
    number: usize,
    /// The event as CloudEvent, without its cursor.
    event: Value,
}

impl Place {
    /// Returns the difference of an event of the feed from this one. The usual differences of an event of OSSA from
    /// the event that it repeats are recorded as `as of OSSA`.
    fn beyond(&self, event: &Value) -> Value {
        let kind = text(&event["type"]);
        if !kind.starts_with("io.ossa.") {
            return beyond(event, &self.event);
        }
        let mut expected = self.event.clone();
        let data = expected["data"].as_object_mut().unwrap();
        data.shift_remove("phase");
        let turn = data.shift_remove("turn").unwrap_or_default();
        data.insert("turn_number".to_owned(), turn);
        data.insert("agent_id".to_owned(), event["data"]["agent_id"].clone());
        let subject = data.get("engagement_id").cloned().unwrap_or_default();
        let instance = data.get("instance_id").map(|id| format!("/instances/{}", text(id)));
        expected["subject"] = subject;
        let source =
            format!("/ossa/agents/{}{}", text(&event["data"]["agent_id"]), instance.unwrap_or_default());
        expected["source"] = json!(source);
        expected["type"] = json!(kind);
        match beyond(event, &expected) {
            Value::Null => json!(format!("{kind} of {}", text(&event["data"]["agent_id"]))),
            more => json!({"as": kind, "beyond": more}),
        }
    }
}

fn places(all: &Map<String, Value>) -> Vec<Place> {
    let mut places = Vec::new();
    for (name, pages) in all["of engagements"].as_object().into_iter().flatten() {
        let events = pages[CLOUD]["events"].as_array();
        for (at, event) in events.into_iter().flatten().enumerate() {
            let mut event = event.clone();
            let cursor = text(&event["id"]);
            event.as_object_mut().unwrap().shift_remove("id");
            places.push(Place { cursor, page: name.clone(), number: at + 1, event });
        }
    }
    places
}
