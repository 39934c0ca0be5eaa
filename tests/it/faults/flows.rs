//! Workflows, cron entries and webhooks under faults: the server is killed, or the database is unreachable. Every
//! step is enqueued once and completed once, every occurrence fires once, and every end reaches every subscriber.

use super::load::client;
use super::site::Site;
use crate::ojs::work::killed::check;
use crate::program::Program;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;
use turnstone_tests::insist::insist;
use turnstone_tests::servers::Port;
use turnstone_tests::{Place, Receiver};

/// The number of workflows of each kind.
const WORKFLOWS: usize = 12;
/// The jobs of one of each kind: a chain of four, a group of five, a batch of three with two callbacks, a graph of four.
const JOBS_OF_FOUR: usize = 4 + 5 + (3 + 2) + 4;
/// Workers over HTTP.
const WORKERS: usize = 3;
/// How long an idle worker waits before it fetches again.
const IDLE: Duration = Duration::from_millis(100);

const COMPLETED: &str = "SELECT count(*) FROM jobs WHERE state = 'completed'";
const FLOWS_COMPLETED: &str = "SELECT count(*) FROM workflows WHERE state = 'completed'";

/// Counts that must be zero when all workflows have ended.
const NOTHING: [(&str, &str); 4] = [
    (
        "steps were enqueued twice",
        "SELECT count(*) FROM (SELECT workflow_seq FROM jobs WHERE workflow_seq IS NOT NULL \
      GROUP BY workflow_seq, workflow_step HAVING count(*) > 1) AS twice",
    ),
    (
        "workflows ended more or less than once",
        "SELECT count(*) FROM workflows w WHERE 1 <> \
      (SELECT count(*) FROM journal v WHERE v.stream = w.seq AND v.names LIKE '%workflow.completed%')",
    ),
    (
        "workflows are not counted right",
        "SELECT count(*) FROM workflows WHERE ended <> members OR succeeded <> members",
    ),
    ("steps did not end", "SELECT count(*) FROM workflow_steps WHERE state NOT IN ('succeeded', 'skipped')"),
];

fn job(n: usize) -> Value {
    let retry = json!({"max_attempts": 1000, "initial_interval": "PT0.1S"});
    json!({"type": "echo", "args": [n], "options": {"queue": "q", "retry": retry}})
}

/// Makes workflows of every kind. A request without an answer is repeated with the same id.
async fn make(http: &Client, url: &str) {
    for _ in 0..WORKFLOWS {
        let named = |name: &str, needs: Value| {
            let mut step = job(0);
            step["id"] = name.into();
            step["depends_on"] = needs;
            step
        };
        for mut body in [
            json!({"type": "chain", "steps": [job(0), job(1), job(2), job(3)]}),
            json!({"type": "group", "jobs": [job(0), job(1), job(2), job(3), job(4)]}),
            json!({"type": "batch", "jobs": [job(0), job(1), job(2)],
                   "callbacks": {"on_complete": job(8), "on_success": job(9), "on_failure": job(10)}}),
            json!({"steps": [named("a", json!([])), named("b", json!(["a"])), named("c", json!(["a"])),
                             named("d", json!(["b", "c"]))]}),
        ] {
            body["id"] = SystemIds.next().into();
            let (status, answer) =
                insist(http, Method::POST, &format!("{url}/ojs/v1/workflows"), &body).await;
            assert!(matches!(status, 201 | 409), "{answer}");
        }
    }
}

/// Workers over HTTP, which end when they are dropped.
struct Workers {
    _all: JoinSet<()>,
    stop: CancellationToken,
}

impl Workers {
    fn start(url: &str) -> Self {
        let (mut all, stop) = (JoinSet::new(), CancellationToken::new());
        for n in 0..WORKERS {
            all.spawn(work(format!("{url}/ojs/v1/workers"), format!("w{n}"), stop.clone()));
        }
        Self { _all: all, stop }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn work(url: String, name: String, stop: CancellationToken) {
    let http = client();
    let requested = json!({"queues": ["q"], "count": 3, "worker_id": name, "visibility_timeout_ms": 2000});
    while !stop.is_cancelled() {
        let (status, answer) = insist(&http, Method::POST, &format!("{url}/fetch"), &requested).await;
        assert_eq!(status, 200, "{answer}");
        let jobs = answer["jobs"].as_array().expect("jobs").clone();
        for job in &jobs {
            let done = json!({"job_id": job["id"], "worker_id": name, "result": job["args"]});
            let (status, answer) = insist(&http, Method::POST, &format!("{url}/ack"), &done).await;
            // Its reservation expired, or an earlier answer was lost.
            assert!(matches!(status, 200 | 409), "{answer}");
        }
        if jobs.is_empty() && tokio::time::timeout(IDLE, stop.cancelled()).await.is_ok() {
            return;
        }
    }
}

/// Asserts that all workflows completed, and that no step was lost or done twice.
async fn ended_well(place: &Place, more_jobs: usize) {
    place.at_least(FLOWS_COMPLETED, i64::try_from(4 * WORKFLOWS).expect("a few")).await;
    let jobs = WORKFLOWS * JOBS_OF_FOUR + more_jobs;
    place.at_least(COMPLETED, i64::try_from(jobs).expect("a few")).await;
    for (what, sql) in NOTHING {
        assert_eq!(place.number(sql).await, 0, "{what}");
    }
    check(place, jobs).await;
}

/// A quarter, a half and three quarters of the jobs.
fn milestones() -> [i64; 3] {
    [1, 2, 3].map(|part| i64::try_from(WORKFLOWS * JOBS_OF_FOUR * part / 4).expect("a few"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_advance_once_when_the_server_is_killed_on_sqlite() {
    let folder = turnstone_tests::scratch::folder();
    let start = |bind: &str| Program::start(folder.path(), &["dev", "--data", "data", "--bind", bind], &[]);
    let port = Port::reserve();
    let bind = port.addr().to_string();
    let mut server = start(&bind);
    let url = server.first_line("turnstone listens on ").await;
    make(&client(), &url).await;
    let place: Place = folder.path().join("data/turnstone.db").into();
    let _workers = Workers::start(&url);
    for milestone in milestones() {
        place.at_least(COMPLETED, milestone).await;
        server.signal("KILL");
        server.ended().await;
        server = start(&bind);
        server.says("turnstone listens on ").await;
    }
    ended_well(&place, 0).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: kills of two processes on the second database"]
async fn workflows_advance_once_when_api_and_scheduler_are_killed_on_postgres() {
    let site = Site::start(&[]).await;
    let start = |bind: &str| {
        let database = [("DATABASE_URL", site.database.url.as_str())];
        Program::start(site.path(), &["api", "--bind", bind], &database)
    };
    let port = Port::reserve();
    let bind = port.addr().to_string();
    let mut api = start(&bind);
    let url = api.first_line("turnstone listens on ").await;
    let mut scheduler = site.scheduler().await;
    make(&client(), &url).await;
    let place = Place::from(&site.database);
    let _workers = Workers::start(&url);
    for milestone in milestones() {
        place.at_least(COMPLETED, milestone).await;
        for killed in [&mut api, &mut scheduler] {
            killed.signal("KILL");
            killed.ended().await;
        }
        api = start(&bind);
        api.says("turnstone listens on ").await;
        scheduler = site.scheduler().await;
    }
    ended_well(&place, 0).await;
    api.stop().await;
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn workflows_cron_and_webhooks_continue_after_an_outage() {
    let site = Site::start(&[]).await;
    let settings = std::fs::read_to_string(site.path().join("turnstone.toml")).unwrap();
    let settings = format!("{settings}[webhooks]\nallow_private = true\n");
    std::fs::write(site.path().join("turnstone.toml"), settings).unwrap();
    let receiver = Arc::new(Receiver::start().await);
    let (api, scheduler) = (site.api(&site.database.url).await, site.scheduler().await);
    let (http, url, place) = (client(), api.url.clone(), Place::from(&site.database));
    let subscribe = json!({"url": receiver.url, "events": ["job.completed"]});
    let (status, answer) =
        insist(&http, Method::POST, &format!("{url}/ojs/v1/webhooks/subscriptions"), &subscribe).await;
    assert_eq!(status, 201, "{answer}");
    let entry = json!({"name": "often", "expression": "* * * * * *", "overlap_policy": "allow", "job_template": job(7)});
    assert_eq!(insist(&http, Method::POST, &format!("{url}/ojs/v1/cron"), &entry).await.0, 201);
    make(&http, &url).await;
    let workers = Workers::start(&url);
    for milestone in milestones() {
        place.at_least(COMPLETED, milestone).await;
        site.postgres.stop_immediate().await;
        site.postgres.start_again().await;
    }
    place.at_least(FLOWS_COMPLETED, i64::try_from(4 * WORKFLOWS).unwrap()).await;
    place.at_least("SELECT runs FROM crons", 3).await;
    insist(&http, Method::DELETE, &format!("{url}/ojs/v1/cron/often"), &json!({})).await;
    let fired = place.number("SELECT count(*) FROM jobs WHERE cron_name = 'often'").await;
    let moments = "SELECT count(DISTINCT v.body) FROM journal v WHERE v.names = 'cron.triggered'";
    assert_eq!(place.number(moments).await, fired, "an occurrence fired twice, or its event is lost");
    ended_well(&place, usize::try_from(fired).unwrap()).await;
    drop(workers);
    let completed = place.number(COMPLETED).await;
    place.at_least("SELECT count(*) FROM deliveries WHERE state = 'delivered'", completed).await;
    let heard: BTreeSet<String> = receiver
        .received()
        .iter()
        .map(|reported| reported.json()["data"]["job_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(i64::try_from(heard.len()).unwrap(), completed, "an end of a job was not sent to a webhook");
    api.program.stop().await;
    scheduler.stop().await;
}
