//! A job that was answered with `201` is on disk: it survives the process that accepted it, and a crash of the
//! database.

use super::load::{client, job};
use super::site::Site;
use crate::program::Program;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;
use turnstone_tests::wait::until;
use turnstone_tests::{ModelServer, Place, Reply};

/// The number of jobs in each client's request: four enqueue single jobs, two enqueue batches.
const CLIENTS: [usize; 6] = [1, 1, 1, 1, 8, 8];
/// How often the process that accepts jobs is killed.
const KILLS: usize = 3;
/// The least number of accepted requests between two kills.
const STRIDE: usize = 25;
/// How long a client waits before it calls a server again that did not answer.
const AGAIN: Duration = Duration::from_millis(20);

const COMPLETED: &str = "SELECT count(*) FROM jobs WHERE state = 'completed'";
/// The number of jobs that did not end exactly once.
const NOT_ONCE: &str = "SELECT count(*) FROM jobs j WHERE 1 <> \
     (SELECT count(*) FROM journal v WHERE v.stream = j.stream AND v.names LIKE '%job.completed%')";

/// A request for one job or for a batch, by the ids of the jobs.
type Ids = Vec<String>;

/// The requests, by their answers.
#[derive(Default)]
struct Answers {
    /// Answered with 201.
    accepted: Vec<Ids>,
    /// Without an answer, or with the answer of a server that was stopping.
    unknown: Vec<Ids>,
}

/// Clients that enqueue until they are stopped. A request without an answer is not repeated.
struct Clients {
    answers: Arc<Mutex<Answers>>,
    stop: CancellationToken,
    all: JoinSet<()>,
}

impl Clients {
    fn start(url: &str) -> Self {
        let (answers, stop, mut all) = (Arc::default(), CancellationToken::new(), JoinSet::new());
        for size in CLIENTS {
            all.spawn(enqueue(url.to_owned(), size, Arc::clone(&answers), stop.clone()));
        }
        Self { answers, stop, all }
    }

    /// Waits for so many further accepted requests.
    async fn accepted(&self, more: usize) {
        let count = || self.answers.lock().unwrap_or_else(PoisonError::into_inner).accepted.len();
        let enough = count() + more;
        until("requests are accepted", async || count() >= enough).await;
    }

    async fn end(mut self) -> Answers {
        self.stop.cancel();
        while let Some(client) = self.all.join_next().await {
            client.expect("a client");
        }
        std::mem::take(&mut self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Sends one request; returns `None` without an answer.
async fn push(http: &reqwest::Client, url: &str, ids: &Ids) -> Option<u16> {
    let mut jobs: Vec<_> = ids.iter().map(|id| job(id)).collect();
    let sent = match jobs.len() {
        1 => http.post(format!("{url}/ojs/v1/jobs")).json(&jobs.remove(0)),
        _ => http.post(format!("{url}/ojs/v1/jobs/batch")).json(&json!({"jobs": jobs})),
    };
    sent.send().await.ok().map(|answer| answer.status().as_u16())
}

fn some(size: usize) -> Ids {
    (0..size).map(|_| SystemIds.next()).collect()
}

async fn enqueue(url: String, size: usize, answers: Arc<Mutex<Answers>>, stop: CancellationToken) {
    let http = client();
    while !stop.is_cancelled() {
        let ids = some(size);
        let status = push(&http, &url, &ids).await;
        let is_accepted = match status {
            Some(201) => true,
            Some(503) | None => false,
            Some(other) => panic!("the server answers {other}"),
        };
        {
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            let kind = if is_accepted { &mut answers.accepted } else { &mut answers.unknown };
            kind.push(ids);
        }
        if !is_accepted {
            let _ = tokio::time::timeout(AGAIN, stop.cancelled()).await;
        }
    }
}

/// Asserts that every accepted job is stored and completes once. A request without an answer is stored as a whole or
/// not at all.
async fn all_end(place: &Place, answers: &Answers) {
    until("every job is completed", async || {
        place.number("SELECT count(*) FROM jobs WHERE state <> 'completed'").await == 0
    })
    .await;
    assert_eq!(place.number(NOT_ONCE).await, 0, "jobs were completed more or less than once");
    let mut stored = stored(place).await;
    for request in &answers.accepted {
        for id in request {
            assert!(stored.remove(id), "{id} was answered with 201 and is lost");
        }
    }
    for request in &answers.unknown {
        let found = request.iter().filter(|id| stored.remove(*id)).count();
        assert!(found == 0 || found == request.len(), "{found} jobs of a batch of {}", request.len());
    }
    assert!(stored.is_empty(), "no client asked for {stored:?}");
}

async fn stored(place: &Place) -> BTreeSet<String> {
    let rows: Vec<(String,)> = place.rows("SELECT id FROM jobs").await;
    rows.into_iter().map(|(id,)| id).collect()
}

/// Kills the process that accepts jobs while clients enqueue, repeatedly, and restarts it at its address.
async fn killed(start: impl Fn(&str) -> Program, place: &Place) {
    let mut server = start("127.0.0.1:0");
    let url = server.first_line("turnstone listens on ").await;
    let bind = url.trim_start_matches("http://").to_owned();
    let clients = Clients::start(&url);
    for _ in 0..KILLS {
        clients.accepted(STRIDE).await;
        server.signal("KILL");
        assert_eq!(server.ended().await, None, "{}", server.warned());
        server = start(&bind);
        server.says("turnstone listens on ").await;
    }
    clients.accepted(STRIDE).await;
    let answers = clients.end().await;
    assert!(!answers.unknown.is_empty(), "every kill came between two requests");
    all_end(place, &answers).await;
    server.stop().await;
}

fn configure(folder: &Path, models: &ModelServer) {
    let settings = format!(
        "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n",
        models.url
    );
    std::fs::write(folder.join("turnstone.toml"), settings).expect("a file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_jobs_outlive_a_killed_server_on_sqlite() {
    let (folder, models) =
        (turnstone_tests::scratch::folder(), ModelServer::start(|_| Reply::text("done")).await);
    configure(folder.path(), &models);
    let start = |bind: &str| Program::start(folder.path(), &["dev", "--data", "data", "--bind", bind], &[]);
    killed(start, &folder.path().join("data/turnstone.db").into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn accepted_jobs_outlive_a_killed_api_on_postgres() {
    let site = Site::start(&[]).await;
    let (scheduler, worker) = (site.scheduler().await, site.worker("w", &site.database.url).await);
    let start = |bind: &str| {
        let database = [("DATABASE_URL", site.database.url.as_str())];
        Program::start(site.path(), &["api", "--bind", bind], &database)
    };
    killed(start, &Place::from(&site.database)).await;
    worker.stop().await;
    scheduler.stop().await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn accepted_jobs_outlive_a_crash_of_the_database() {
    let site = Site::start(&[]).await;
    let (api, place) = (site.api(&site.database.url).await, Place::from(&site.database));
    let (http, mut accepted) = (client(), BTreeSet::new());
    for size in [1, 20, 1] {
        let ids = some(size);
        until("the request is accepted", async || push(&http, &api.url, &ids).await == Some(201)).await;
        site.postgres.stop_immediate().await;
        accepted.extend(ids);
        site.postgres.start_again().await;
        assert_eq!(stored(&place).await, accepted, "after a batch of {size}");
    }
    let (scheduler, worker) = (site.scheduler().await, site.worker("w", &site.database.url).await);
    let all = i64::try_from(accepted.len()).unwrap();
    site.until("every job is completed", COMPLETED, |completed| completed == all).await;
    for program in [worker, scheduler, api.program] {
        program.stop().await;
    }
}
