//! Clients that enqueue one job after another and record the answers.

use reqwest::Client;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;
use turnstone_tests::ModelServer;
use turnstone_tests::wait::{self, Pauses};

const CLIENTS: usize = 3;
/// About the most jobs that wait: more than the workers have slots, so that none of them is idle.
const AHEAD: usize = 24;
/// The deadline of an answer, and of the jobs before it: the database may be unreachable for as long as a test waits.
const LONG: Duration = Duration::from_secs(300);

/// Steady load until [`Load::end`].
pub struct Load {
    stop: CancellationToken,
    accepted: Arc<Mutex<BTreeSet<String>>>,
    clients: JoinSet<()>,
}

impl Load {
    /// Starts clients of the API at this address.
    pub fn start(url: &str, models: &Arc<ModelServer>) -> Self {
        let (stop, accepted, mut clients) = (CancellationToken::new(), Arc::default(), JoinSet::new());
        for _ in 0..CLIENTS {
            let url = url.to_owned();
            clients.spawn(enqueue(url, Arc::clone(models), Arc::clone(&accepted), stop.clone()));
        }
        Self { stop, accepted, clients }
    }

    /// Adds a job that another client enqueued.
    pub fn knows(&self, id: String) {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// Stops the clients and returns the ids of all accepted jobs.
    pub async fn end(mut self) -> BTreeSet<String> {
        self.stop.cancel();
        while let Some(client) = self.clients.join_next().await {
            client.expect("a client");
        }
        std::mem::take(&mut self.accepted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn enqueue(
    url: String,
    models: Arc<ModelServer>,
    accepted: Arc<Mutex<BTreeSet<String>>>,
    stop: CancellationToken,
) {
    let http = client();
    while !stop.is_cancelled() {
        let id = SystemIds.next();
        until_accepted(&http, &url, &job(&id)).await;
        let ahead = {
            let mut accepted = accepted.lock().unwrap_or_else(PoisonError::into_inner);
            assert!(accepted.insert(id), "an id was made twice");
            accepted.len().saturating_sub(AHEAD)
        };
        tokio::select! {
            () = models.seen_within(ahead, LONG) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Returns a client with the usual timeout.
pub fn client() -> Client {
    let patience = Duration::from_secs(30);
    turnstone_tests::http::client_builder().timeout(patience).build().expect("a client")
}

/// Returns a job of one turn.
pub fn job(id: &str) -> Value {
    json!({"id": id, "type": "agent.ask", "args": ["hi"], "ext_agent_token_budget": 50_000})
}

/// Enqueues once. Returns the status, or `None` when the outcome is unknown.
pub async fn push(http: &Client, url: &str, job: &Value) -> Option<u16> {
    let request = http.post(format!("{url}/ojs/v1/jobs")).json(job);
    request.send().await.ok().map(|answer| answer.status().as_u16())
}

/// Enqueues with the same id until the job is accepted, as documented for clients.
pub async fn until_accepted(http: &Client, url: &str, job: &Value) {
    let accepted = async {
        let (mut unsure, mut pauses) = (false, Pauses::default());
        loop {
            match push(http, url, job).await {
                Some(201) => return,
                // An earlier request was accepted, and its answer was lost.
                Some(409) if unsure => return,
                Some(503) | None => unsure = true,
                Some(other) => panic!("the api answers {other}"),
            }
            pauses.next().await;
        }
    };
    wait::output_within("a job is accepted", LONG, accepted).await;
}
