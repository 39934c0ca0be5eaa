//! A worker process is killed while a provider that keeps answers writes one.

use super::{killed, on_every_store, start};
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::JobState;
use turnstone_tests::model_server::Gate;
use turnstone_tests::{Backend, Fleet, Reply, wait};

/// The fate of an answer that the provider was asked for.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Written,
    Failed,
    Forgotten,
    Refused,
}

/// A provider of OpenAI's responses API that keeps what it is asked to keep. It writes an answer on when its client has
/// left, until the gate opens.
#[derive(Clone)]
struct Provider {
    ends: Ends,
    gate: Gate,
    /// The bodies of requests for answers, and the ids of fetched ones.
    asked: Arc<Mutex<Vec<Value>>>,
    fetched: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    async fn start(ends: Ends) -> (Self, String, AbortOnDropHandle<()>) {
        let provider = Self { ends, gate: Gate::default(), asked: Arc::default(), fetched: Arc::default() };
        let app = Router::new()
            .route("/v1/responses", post(Self::answer))
            .route("/v1/responses/{id}", get(Self::kept))
            .with_state(provider.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        (provider, url, AbortOnDropHandle::new(serving))
    }

    async fn answer(State(provider): State<Self>, body: Bytes) -> Response {
        let number = {
            let mut asked = provider.asked.lock().unwrap();
            asked.push(serde_json::from_slice(&body).unwrap());
            asked.len()
        };
        let said = |kind: &str, response: &Value| {
            Ok::<_, std::io::Error>(format!("data: {}\n\n", json!({"type": kind, "response": response})))
        };
        let id = format!("resp_{number}");
        let begun = said("response.created", &json!({"id": id, "model": "m", "status": "in_progress"}));
        let gate = provider.gate.clone();
        let rest = stream::once(async move {
            gate.passed().await;
            said("response.completed", &written(&id))
        });
        let body = Body::from_stream(stream::iter([begun]).chain(rest));
        ([("content-type", "text/event-stream")], body).into_response()
    }

    async fn kept(State(provider): State<Self>, Path(id): Path<String>) -> Response {
        provider.fetched.lock().unwrap().push(id.clone());
        match provider.ends {
            Ends::Forgotten => StatusCode::NOT_FOUND.into_response(),
            Ends::Refused => StatusCode::FORBIDDEN.into_response(),
            Ends::Failed => {
                let error = json!({"code": "server_error", "message": "no"});
                Json(json!({"id": id, "status": "failed", "error": error, "output": []})).into_response()
            }
            // The first look comes too early.
            Ends::Written if provider.fetched.lock().unwrap().len() == 1 => {
                Json(json!({"id": id, "status": "in_progress", "output": []})).into_response()
            }
            Ends::Written => Json(written(&id)).into_response(),
        }
    }
}

fn written(id: &str) -> Value {
    let content = json!([{"type": "output_text", "text": format!("the answer {id}"), "annotations": []}]);
    json!({"id": id, "model": "m", "status": "completed",
           "output": [{"type": "message", "id": "msg_1", "role": "assistant", "content": content}],
           "usage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}})
}

/// A worker dies while the provider writes. Returns the provider, and the job as another worker ended it.
async fn killed_amid_an_answer(backend: Backend, ends: Ends, store: bool) -> (Provider, Value) {
    let (provider, url, _serving) = Provider::start(ends).await;
    let fleet =
        Fleet::builder().on(backend).workers(0).model(|_: &Value| Reply::text("unused")).start().await;
    let settings =
        json!({"provider": {"kind": "openai-responses", "base_url": url, "store": store}}).to_string();
    let id = fleet.push(&json!({"type": "agent.kept", "args": ["go"], "ext_agent_model": "m"})).await;
    let mut worker = start(&fleet, 1, 15_000, &settings, None);
    wait::until("the provider is asked", async || provider.asked.lock().unwrap().len() == 1).await;
    if store {
        let noted = "SELECT count(*) FROM jobs WHERE position LIKE '%resp_1%'";
        fleet.until("the id of the answer is durable", async || fleet.number(noted).await == 1).await;
    }
    worker.start_kill().expect("the worker runs");
    killed(worker).await;
    // Requests after the kill are answered at once.
    provider.gate.open();
    fleet.release_all().await;
    let worker = start(&fleet, 1, 15_000, &settings, None);
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    drop(worker);
    assert_eq!(fleet.number("SELECT count(*) FROM jobs WHERE position LIKE '%resp_%'").await, 0);
    fleet.end().await;
    (provider, done)
}

/// The answer is fetched by its id, as soon as the provider has written it, and paid for once.
#[tokio::test]
async fn a_kept_answer_is_fetched_and_not_bought_again() {
    on_every_store(async |backend| {
        let (provider, done) = killed_amid_an_answer(backend, Ends::Written, true).await;
        assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("the answer resp_1")));
        assert_eq!(done["ext_agent_tokens_used"], 18, "{done:#}");
        let asked = provider.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 1);
        assert_eq!((&asked[0]["store"], &asked[0]["background"]), (&json!(true), &json!(true)));
        assert_eq!(*provider.fetched.lock().unwrap(), ["resp_1", "resp_1"]);
    })
    .await;
}

/// An answer that failed, or that the provider does not have any more, is bought again.
#[tokio::test]
async fn an_answer_that_is_gone_is_bought_again() {
    let sites = [
        (Backend::Sqlite, Ends::Failed),
        (Backend::Postgres, Ends::Forgotten),
        (Backend::Sqlite, Ends::Refused),
    ];
    for (backend, ends) in sites {
        let (provider, done) = killed_amid_an_answer(backend, ends, true).await;
        assert_eq!(done["result"], "the answer resp_2", "{done:#}");
        assert_eq!((provider.asked.lock().unwrap().len(), provider.fetched.lock().unwrap().len()), (2, 1));
    }
}

/// Without `store` the provider keeps nothing, and is asked for nothing.
#[tokio::test]
async fn without_store_nothing_is_kept() {
    let (provider, done) = killed_amid_an_answer(Backend::Sqlite, Ends::Written, false).await;
    assert_eq!(done["result"], "the answer resp_2", "{done:#}");
    let asked = provider.asked.lock().unwrap().clone();
    assert_eq!((&asked[0]["store"], &asked[0]["background"]), (&json!(false), &Value::Null));
    assert!(provider.fetched.lock().unwrap().is_empty());
}
