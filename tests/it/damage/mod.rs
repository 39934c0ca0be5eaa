//! Damage stays where it is: while the values of a column are damaged from outside, jobs beside them complete and every list
//! answers.

mod cells;
mod victims;

use cells::Damage;
use serde_json::{Value, json};
use std::time::Duration;
use turnstone_scheduler::SchedulerOptions;
use turnstone_tests::{Backend, Fleet, OjsServer, Receiver, wait};

/// How long the jobs beside the damage may take.
const PATIENCE: Duration = Duration::from_secs(8);

/// The lists of the API: its paths without parameters.
async fn lists(server: &OjsServer) -> Vec<String> {
    let document = server.get("/openapi.json").await.expect(200).json();
    let paths = document["paths"].as_object().expect("paths").iter();
    let lists = paths.filter(|(path, methods)| !path.contains('{') && methods.get("get").is_some());
    // Streams do not end, and a look at readiness may say that something is wrong.
    let lists = lists.map(|(path, _)| path.clone());
    lists.filter(|path| !["stream", "ready", "sse"].iter().any(|word| path.contains(word))).collect()
}

/// What a round found wrong.
async fn beside(server: &OjsServer, receiver: &Receiver, lists: &[String], round: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let fleet = &server.fleet;
    server.post(&format!("/ojs/v1/queues/{}/resume", victims::QUEUE), &json!({})).await;
    let before = receiver.count();
    let mut ids = Vec::new();
    let jobs = [
        json!({"type": "agent.good", "args": ["hi"], "ext_agent_model": format!("good-{round}")}),
        json!({"type": "good.mail", "args": [round], "options": {"queue": "good"}}),
    ];
    for job in jobs {
        let reply = server.post("/ojs/v1/jobs", &job).await;
        match reply.status {
            201 => ids.push(reply.json()["job"]["id"].as_str().unwrap().to_owned()),
            status => wrong.push(format!("a push is answered with {status}: {}", reply.text)),
        }
    }
    let ask = json!({"queues": ["good", victims::QUEUE], "worker_id": "good", "count": 10});
    let done = wait::holds(PATIENCE, async || {
        fleet.clock.advance_ms(3_000);
        if let Err(error) = fleet.scheduler(SchedulerOptions::alone()).tick().await {
            wrong.push(format!("a duty fails: {error}"));
        }
        let fetched = server.post("/ojs/v1/workers/fetch", &ask).await;
        if fetched.status != 200 {
            wrong.push(format!("a fetch is answered with {}: {}", fetched.status, fetched.text));
        } else {
            for job in fetched.json()["jobs"].as_array().unwrap() {
                let ack = json!({"job_id": job["id"], "result": {}});
                server.post("/ojs/v1/workers/ack", &ack).await;
            }
        }
        let mut done = true;
        for id in &ids {
            let reply = server.get(&format!("/ojs/v1/jobs/{id}")).await;
            done &= reply.status == 200 && reply.json()["job"]["state"] == "completed";
        }
        done && receiver.count() >= before + 2
    });
    if !done.await {
        for id in &ids {
            let reply = server.get(&format!("/ojs/v1/jobs/{id}")).await;
            wrong.push(format!("a job does not complete: {} {}", reply.status, state(&reply.text)));
        }
        wrong.push(format!("{} events were delivered", receiver.count() - before));
    }
    for path in lists {
        let reply = server.get(path).await;
        if reply.status >= 500 {
            wrong.push(format!("{path} is answered with {}: {}", reply.status, reply.text));
        }
    }
    wrong.dedup();
    wrong.truncate(12);
    wrong
}

fn state(text: &str) -> Value {
    let job: Value = serde_json::from_str(text).unwrap_or_default();
    json!([job["job"]["state"], job["job"]["error"]])
}

async fn matrix(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(victims::script).start().await;
    let server = OjsServer::over(fleet);
    let receiver = Receiver::start().await;
    victims::lasting(&server, &receiver).await;
    let lists = lists(&server).await;
    let only = std::env::var("DAMAGE").unwrap_or_default();
    let (mut wrong, mut empty, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (round, column) in cells::columns(&server.fleet.place).await.into_iter().enumerate() {
        if !column.to_string().contains(&only) {
            continue;
        }
        victims::waiting(&server, round).await;
        match column.damage(&server.fleet.place).await {
            Damage::Done => {}
            Damage::Empty => {
                empty.push(column.to_string());
                continue;
            }
            Damage::Refused => {
                refused.push(column.to_string());
                continue;
            }
        }
        let found = beside(&server, &receiver, &lists, round).await;
        if !found.is_empty() {
            eprintln!("{column}: {found:#?}");
            wrong.push(column.to_string());
        }
        column.repair(&server.fleet.place).await;
    }
    eprintln!("empty: {empty:?}\nrefused: {refused:?}");
    assert!(wrong.is_empty(), "{} columns: {wrong:#?}", wrong.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_column_of_sqlite() {
    matrix(Backend::Sqlite).await;
}
