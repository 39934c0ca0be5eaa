//! Streams across killed processes and a lost database: a reader that resumes ends with the sequence of an
//! undisturbed run.

use super::{LEAD, SCOUT, script};
use crate::program::{Program, run};
use eventsource_stream::Event;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;
use turnstone_tests::servers::Postgres;
use turnstone_tests::sse::data;
use turnstone_tests::wait::{self, Pauses};
use turnstone_tests::{Gate, ModelServer, Place, Reply, ToolServer, fleet, model_server, sse};

/// The deadline of a task that another worker has to take over.
const LONG: Duration = Duration::from_secs(180);

/// Returns the parts of the events that are equal in every run of the same story, without deltas.
fn story(events: &[Event]) -> Vec<Value> {
    let events_seen = events.iter().filter(|event| event.event == "message").map(data);
    let of = |event: Value| {
        json!([
            event["id"],
            event["type"],
            event["agent"],
            event["depth"],
            event["role"],
            event["content"],
            event["text_result"],
            event["finish_reason"],
            event["result"],
            event["exposes"]
        ])
    };
    events_seen.map(of).collect()
}

/// Returns the parts of the A2A tasks that are equal in every run: the last state and its result.
fn outcome(event: &Value) -> Value {
    let task = &event["result"]["task"];
    json!([task["status"]["state"], task["artifacts"][0]["parts"]])
}

fn has_ended(events: &[Event]) -> bool {
    events.last().is_some_and(|event| data(event)["type"] == "request_completed")
}

/// A model whose scout does not answer a second time before the gate is open.
fn gated(gate: &Gate) -> impl Fn(&Value) -> Reply + Send + Sync + 'static {
    let held = gate.clone();
    move |request| {
        let scouts = request["messages"].to_string().contains("You are scout");
        let reply = script(request);
        if scouts && model_server::outcomes(request) == 1 { reply.behind(&held) } else { reply }
    }
}

fn client() -> reqwest::Client {
    fleet::install_crypto();
    turnstone_tests::http::client()
}

async fn post(url: &str, body: String) -> reqwest::Response {
    let sent = client().post(url).header("content-type", "application/json").header("a2a-version", "1.0");
    let answer = sent.body(body).send().await.unwrap();
    assert!(answer.status().is_success(), "{url}: {}", answer.text().await.unwrap());
    answer
}

async fn register(url: &str) {
    for document in [SCOUT, LEAD] {
        turnstone_tests::http::register(url, document).await;
    }
}

/// Sends a request to the lead and returns its id.
async fn ask(url: &str) -> String {
    let answer = post(&format!("{url}/agents/lead/process"), json!({"input": "go"}).to_string()).await;
    answer.headers()["x-request-id"].to_str().unwrap().to_owned()
}

async fn task(url: &str, id: &str) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": id}});
    let answer = post(&format!("{url}/a2a/lead"), call.to_string()).await;
    json!({"result": {"task": answer.json::<Value>().await.unwrap()["result"]}})
}

/// Subscribes to a task repeatedly until it has ended, and returns its last update.
async fn subscribed(url: &watch::Receiver<String>, id: &str) -> Value {
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": id}}).to_string();
    let (client, mut last) = (client(), Value::Null);
    let subscribing = async {
        let mut pauses = Pauses::default();
        loop {
            let to = format!("{}/a2a/lead", *url.borrow());
            let sent =
                client.post(to).header("content-type", "application/json").header("a2a-version", "1.0");
            if let Ok(answer) = sent.body(call.clone()).send().await
                && let Ok(text) = answer.text().await
            {
                let mut events_seen = text.lines().rev().filter_map(|line| line.strip_prefix("data:"));
                if let Some(events_seen) = events_seen.next() {
                    last = serde_json::from_str(events_seen).unwrap();
                } else if !text.is_empty() {
                    // A task that has ended cannot be subscribed to.
                    return last;
                }
                if last["result"]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED" {
                    return last;
                }
            }
            pauses.next().await;
        }
    };
    wait::output_within("a task ends", LONG, subscribing).await
}

/// The processes of a fleet on one database.
struct Site {
    folder: tempfile::TempDir,
    database: String,
    models: ModelServer,
    _tools: ToolServer,
}

impl Site {
    async fn new(database: &str, script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let (models, tools) = (ModelServer::start(script).await, ToolServer::start().await);
        let folder = turnstone_tests::scratch::folder();
        let toml = format!(
            "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n\
             [tools.book]\ndescription = 'Books.'\nmethod = 'POST'\nurl = '{}/book'\nidempotent = true\n\
             allow_private = true\ninput_schema = '{{\"type\": \"object\"}}'\n",
            models.url, tools.url
        );
        std::fs::write(folder.path().join("turnstone.toml"), toml).unwrap();
        let site = Self { folder, database: database.to_owned(), models, _tools: tools };
        assert_eq!(run(site.path(), &["migrate"], &[("DATABASE_URL", database)]).await.code, Some(0));
        site
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn start(&self, arguments: &[&str]) -> Program {
        Program::start(self.path(), arguments, &[("DATABASE_URL", &self.database)])
    }

    async fn api(&self) -> (Program, String) {
        let mut api = self.start(&["api", "--bind", "127.0.0.1:0"]);
        let url = api.first_line("turnstone listens on ").await;
        (api, url)
    }

    async fn worker(&self, name: &str) -> Program {
        let mut worker = self.start(&["worker", "--name", name, "--lease", "60m"]);
        worker.first_line(&format!("turnstone worker {name} runs ")).await;
        worker
    }
}

/// Issue 7, "Shown", §6.3.3: an API process and a worker process are killed in the middle of a stream. The client
/// resumes after its last event at another API process, while another worker takes over the job. It ends with the
/// same sequence as an undisturbed run, and so does a subscriber of the same request over A2A.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_stream_survives_an_api_and_a_worker_that_are_killed() {
    let gate = Gate::default();
    let database = Postgres::shared().await.database().await;
    let site = Site::new(&database.url, gated(&gate)).await;
    let _scheduler = site.start(&["scheduler"]);
    let (mut api, url) = site.api().await;
    let mut worker = site.worker("first").await;
    register(&url).await;
    let request = ask(&url).await;
    let (place, places) = watch::channel(url);
    let (read, mut reading) = watch::channel(0);
    let (id, at) = (request.clone(), places.clone());
    let following = tokio::spawn(async move {
        let url = || format!("{}/agents/lead/getevents/{id}?stream=true", *at.borrow());
        sse::follow(url, |events| {
            read.send_replace(events.len());
            has_ended(events)
        })
        .await
    });
    let (id, at) = (request.clone(), places.clone());
    let watching = tokio::spawn(async move { subscribed(&at, &id).await });
    // The middle: the scout waits for its model's second answer, and the client has read the events before it.
    site.models.seen(4).await;
    wait::output("ten events", reading.wait_for(|read| *read >= 10)).await.unwrap();
    for program in [&mut api, &mut worker] {
        program.signal("KILL");
        program.ended().await;
    }
    // The leases expire.
    let over = "UPDATE jobs SET lease_expires_at = 0 WHERE state = 'active'";
    Place::from(&database).change(over).await;
    let (other, url) = site.api().await;
    place.send_replace(url.clone());
    gate.open();
    let _other_worker = site.worker("second").await;

    let disturbed = following.await.unwrap();
    watching.await.unwrap();
    let undisturbed = ask(&url).await;
    let of = |id: &str| format!("{url}/agents/lead/getevents/{id}?stream=true");
    let whole = sse::follow(|| of(&undisturbed), has_ended).await;
    assert_eq!(story(&disturbed), story(&whole));
    assert_eq!(data(disturbed.last().unwrap())["finish_reason"], "success");
    assert_eq!(outcome(&task(&url, &request).await), outcome(&task(&url, &undisturbed).await));
    drop(other);
}

/// The database becomes unreachable under open streams and returns. Each stream continues, or breaks so that its
/// reader can resume, and ends with the same sequence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn streams_survive_a_database_that_goes_away() {
    let gate = Gate::default();
    let postgres = Postgres::own().await;
    let database = postgres.database().await;
    let site = Site::new(&database.url, gated(&gate)).await;
    let _scheduler = site.start(&["scheduler"]);
    let (_api, url) = site.api().await;
    let _worker = site.worker("only").await;
    register(&url).await;
    let request = ask(&url).await;
    let streams = ["getevents", "events"].map(|kind| {
        let (base, request) = (url.clone(), request.clone());
        let url = match kind {
            "getevents" => format!("{base}/agents/lead/getevents/{request}?stream=true"),
            _ => format!("{base}/ojs/v1/jobs/{request}/events?stream=true"),
        };
        let (read, reading) = watch::channel(0);
        let following = tokio::spawn(sse::follow(
            move || url.clone(),
            move |events| {
                read.send_replace(events.len());
                has_ended(events) || events.last().is_some_and(|event| event.event == "job.completed")
            },
        ));
        (following, reading)
    });
    site.models.seen(4).await;
    let [(protocol, mut one), (own, mut other)] = streams;
    for reading in [&mut one, &mut other] {
        wait::output("five events", reading.wait_for(|read| *read >= 5)).await.unwrap();
    }
    postgres.stop_immediate().await;
    gate.open();
    postgres.start_again().await;
    let protocol = protocol.await.unwrap();
    let own = own.await.unwrap();

    let undisturbed = ask(&url).await;
    let of = |id: &str| format!("{url}/agents/lead/getevents/{id}?stream=true");
    let whole = sse::follow(|| of(&undisturbed), has_ended).await;
    assert_eq!(story(&protocol), story(&whole));
    let ids: Vec<i64> = own
        .iter()
        .filter(|e| e.event != "delta")
        .map(|e| e.id.split('.').next().unwrap().parse().unwrap())
        .collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "each event once, in order: {ids:?}");
    let again = sse::read(&format!("{url}/ojs/v1/jobs/{request}/events?stream=true"), None, |_| false).await;
    let durable = |events: &[Event]| -> Vec<(String, String)> {
        let durable = events.iter().filter(|event| event.event != "delta");
        durable.map(|event| (event.id.clone(), event.data.clone())).collect()
    };
    assert_eq!(durable(&own), durable(&again), "no event is missing");
}
