//! The load of a failover: agents that call tools, delegate and wait for reviews, and jobs of workers over HTTP.

use crate::faults::load::{client, until_accepted};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;
use turnstone_tests::insist::insist;
use turnstone_tests::model_server::{ModelCall, outcomes, who};
use turnstone_tests::{ModelServer, Reply, ToolServer, documents, wait};

/// The time of a model call.
const LATENCY: Duration = Duration::from_millis(60);
/// The turns with a tool call of an agent that only searches.
const SEARCHES: usize = 5;
/// The same of the engagement whose stream is read: it runs before, in and after the failover.
const STEPS: usize = 36;
/// The pause of a client between two jobs. The workers need longer for its jobs, so that some always wait.
const PACE: Duration = Duration::from_millis(150);
/// The same of the client of workers over HTTP.
const PLAIN_PACE: Duration = Duration::from_millis(60);

/// Returns the answer of the model. The first user message of every agent is the id of its client's job.
pub(super) fn model(request: &Value) -> Reply {
    let call = ModelCall { request: request.clone(), reported: 0 };
    let (job, turn) = (call.input(), turn_of(request));
    let search = || Reply::call("search", json!({"job": job, "turn": turn}));
    let reply = match (who(request), turn) {
        ("walker", turn) if turn < STEPS => search(),
        ("lead", 0) => Reply::call("scout", json!({"input": job})),
        ("booker", 0) => Reply::call("book", json!({"job": job, "turn": turn, "price": 640})),
        ("walker" | "lead" | "booker" | "scout", _) => Reply::text("done"),
        (_, turn) if turn < SEARCHES => search(),
        _ => Reply::text("done"),
    };
    reply.after(LATENCY)
}

/// Returns the number of turns with calls before a request. The request has a window of the conversation only, so the
/// newest arguments contain it.
fn turn_of(request: &Value) -> usize {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let newest =
        messages.iter().rev().find_map(|message| message["tool_calls"][0]["function"]["arguments"].as_str());
    let newest: Option<Value> = newest.and_then(|arguments| serde_json::from_str(arguments).ok());
    let turn =
        newest.and_then(|arguments| arguments["turn"].as_u64()).and_then(|turn| usize::try_from(turn).ok());
    turn.map_or_else(|| outcomes(request), |turn| turn + 1)
}

/// Registers the agents.
pub(super) async fn register(url: &str) {
    let reviewed = "capabilities:\n  book:\n    user_identity: false\n    input_restriction:\n      \
                    assertion: recent[\"book\"].inputs.price <= 800\n      require_review: manager";
    for document in [
        documents::ossa(
            "walker",
            "  tools: [{type: http, name: search}]\n  constraints: {max_turns: 1000}\n  turn_chain: {max_tool_turns: 1000}",
        ),
        documents::oas("scout", "capabilities: {}"),
        documents::oas("lead", "capabilities: {\"scout\": {}}"),
        documents::oas("booker", reviewed),
    ] {
        turnstone_tests::http::register(url, &document).await;
    }
}

/// The kinds of jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Search,
    Lead,
    Booker,
    Walker,
    Plain,
}

impl Kind {
    fn job(self, id: &str) -> Value {
        let retry = json!({"max_attempts": 100, "initial_interval": "PT0.1S", "jitter": false});
        let mut job = match self {
            Self::Plain => json!({"type": "echo", "args": [id], "options": {"queue": "q"}}),
            Self::Search => {
                json!({"type": "agent.search", "args": [id], "ext_agent_tools": [{"name": "search"}]})
            }
            Self::Lead => json!({"type": "agent.lead", "args": [id], "meta": {"agent": "lead"}}),
            Self::Booker => json!({"type": "agent.book", "args": [id], "meta": {"agent": "booker"}}),
            Self::Walker => json!({"type": "agent.walk", "args": [id], "meta": {"agent": "walker"}}),
        };
        job["id"] = id.into();
        job["options"]["retry"] = retry;
        if self != Self::Plain {
            job["ext_agent_token_budget"] = 1_000_000.into();
        }
        job
    }
}

/// Steady load until [`Load::end`].
pub(super) struct Load {
    url: String,
    accepted: Arc<Mutex<Vec<String>>>,
    pushing: CancellationToken,
    serving: CancellationToken,
    clients: JoinSet<()>,
}

impl Load {
    pub(super) fn start(url: &str) -> Self {
        let (pushing, serving) = (CancellationToken::new(), CancellationToken::new());
        let (accepted, mut clients) = (Arc::default(), JoinSet::new());
        for (kinds, pace) in [
            (&[Kind::Search, Kind::Lead][..], PACE),
            (&[Kind::Search, Kind::Booker][..], PACE),
            (&[Kind::Plain][..], PLAIN_PACE),
        ] {
            clients.spawn(enqueue(url.to_owned(), kinds, pace, Arc::clone(&accepted), pushing.clone()));
        }
        clients.spawn(work(format!("{url}/ojs/v1/workers"), serving.clone()));
        clients.spawn(review(url.to_owned(), serving.clone()));
        Self { url: url.to_owned(), accepted, pushing, serving, clients }
    }

    /// Enqueues the job whose stream is read; returns its engagement.
    pub(super) async fn walk(&self) -> String {
        let id = SystemIds.next();
        until_accepted(&client(), &self.url, &Kind::Walker.job(&id)).await;
        lock(&self.accepted).push(id.clone());
        let url = format!("{}/ojs/v1/jobs/{id}", self.url);
        let (_, job) = insist(&client(), Method::GET, &url, &Value::Null).await;
        job["job"]["ext_agent_engagement_id"].as_str().expect("an engagement").to_owned()
    }

    /// Returns the number of jobs that were accepted so far.
    pub(super) fn accepted(&self) -> usize {
        lock(&self.accepted).len()
    }

    /// Waits for so many further accepted jobs.
    pub(super) async fn accepts(&self, more: usize) {
        let enough = self.accepted() + more;
        wait::until("jobs are accepted", async || self.accepted() >= enough).await;
    }

    /// Enqueues nothing more; returns the ids of all accepted jobs. Workers and reviewers continue.
    pub(super) fn enough(&self) -> Vec<String> {
        self.pushing.cancel();
        lock(&self.accepted).clone()
    }

    /// Ends every client.
    pub(super) async fn end(mut self) {
        self.pushing.cancel();
        self.serving.cancel();
        while let Some(client) = self.clients.join_next().await {
            client.expect("a client");
        }
    }
}

fn lock(ids: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    ids.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn enqueue(
    url: String,
    kinds: &'static [Kind],
    pace: Duration,
    accepted: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
) {
    let http = client();
    for kind in kinds.iter().cycle() {
        let id = SystemIds.next();
        until_accepted(&http, &url, &kind.job(&id)).await;
        lock(&accepted).push(id);
        if tokio::time::timeout(pace, stop.cancelled()).await.is_ok() {
            return;
        }
    }
}

/// A worker over HTTP.
async fn work(url: String, stop: CancellationToken) {
    let http = client();
    let requested = json!({"queues": ["q"], "count": 3, "worker_id": "far", "visibility_timeout_ms": 2000});
    while !stop.is_cancelled() {
        let (status, answer) = insist(&http, Method::POST, &format!("{url}/fetch"), &requested).await;
        assert_eq!(status, 200, "{answer}");
        let jobs = answer["jobs"].as_array().expect("jobs").clone();
        for job in &jobs {
            let done = json!({"job_id": job["id"], "worker_id": "far", "result": job["args"]});
            let (status, answer) = insist(&http, Method::POST, &format!("{url}/ack"), &done).await;
            // The database forgot the job or its lease, or an earlier answer was lost.
            assert!(matches!(status, 200 | 404 | 409), "{answer}");
        }
        if jobs.is_empty() && tokio::time::timeout(PLAIN_PACE, stop.cancelled()).await.is_ok() {
            return;
        }
    }
}

/// The reviewer of the bookings.
async fn review(url: String, stop: CancellationToken) {
    let http = client();
    while !stop.is_cancelled() {
        let (_, open) = insist(&http, Method::GET, &format!("{url}/reviews?state=open"), &Value::Null).await;
        for review in open["items"].as_array().into_iter().flatten() {
            let url = format!("{url}/reviews/{}/approve", review["id"].as_str().expect("an id"));
            insist(&http, Method::POST, &url, &json!({"by": "manager", "reason": "because"})).await;
        }
        if tokio::time::timeout(PACE, stop.cancelled()).await.is_ok() {
            return;
        }
    }
}

/// Calls that were made more than once, by job and turn.
#[derive(Default, Debug)]
pub(super) struct Repeated {
    /// Requests to the model for one turn of one agent beyond the first.
    pub(super) model: usize,
    /// Requests to a tool for one call beyond the first.
    pub(super) tools: usize,
    /// Calls of tools whose requests had different `Idempotency-Key`s.
    pub(super) changed_keys: usize,
}

/// Counts the calls that were repeated.
pub(super) fn repeated(models: &ModelServer, tools: &ToolServer) -> Repeated {
    let mut turns: BTreeMap<(String, String, usize), usize> = BTreeMap::new();
    for call in models.calls() {
        let turn = (who(&call.request).to_owned(), call.input().to_owned(), turn_of(&call.request));
        *turns.entry(turn).or_default() += 1;
    }
    let mut keys: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for call in tools.calls() {
        keys.entry((call.tool, call.input.to_string())).or_default().push(call.key);
    }
    let beyond_the_first = |times: usize| times - 1;
    Repeated {
        model: turns.values().copied().map(beyond_the_first).sum(),
        tools: keys.values().map(Vec::len).map(beyond_the_first).sum(),
        changed_keys: keys.values().filter(|keys| keys.iter().any(|key| *key != keys[0])).count(),
    }
}
