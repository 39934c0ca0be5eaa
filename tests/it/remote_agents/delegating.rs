//! One server's agent calls another server's agent while servers are killed or jobs are cancelled.

use super::{PEERS, PROTOCOLS, Site, as_peer, remote, tool_outcome, who};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::wait::until;
use turnstone_tests::{Gate, ModelServer, Reply, model_server};

const FRONT: (&str, &str) = ("front", "capabilities: {scout: {}}\n");
const SCOUT: (&str, &str) = ("scout", "");

/// Front calls the scout and repeats its answer; the scout's answer is held back.
fn script(gate: Gate) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| match (who(request), model_server::outcomes(request)) {
        ("front", 0) => Reply::call("scout", json!({"input": "what is there?"})),
        ("front", _) => Reply::text(format!("heard {}", tool_outcome(request))),
        (_, _) => Reply::text("all quiet").behind(&gate),
    }
}

/// Issue 7, "Agent-to-agent" and "A2A": one server's agent uses another's as a tool. A server that is killed
/// meanwhile waits for the same remote call. The other server was called once, with depth, budget and user, and its
/// usage is booked.
#[tokio::test]
async fn a_killed_server_waits_for_the_same_remote_call() {
    for (protocol, place) in PROTOCOLS {
        let gate = Gate::default();
        let models = ModelServer::start(script(gate.clone())).await;
        let far = Site::start(&models.url, PEERS, &[SCOUT]).await;
        let settings = remote(protocol, place, &far.url, &as_peer());
        let mut near = Site::start(&models.url, &settings, &[FRONT]).await;
        let job = near.push("front").await;
        // Front and scout have called their models.
        models.seen(2).await;
        near.kill().await;
        gate.open();
        near.revive().await;
        let front = near.in_state(&job, &["completed", "failed"]).await;
        let text = front["results"]["text"].as_str().unwrap_or_default();
        assert!(front["status"] == "completed" && text.contains("all quiet"), "{protocol}: {front:#}");
        let scouts = far.engagements("scout").await;
        assert_eq!(scouts.len(), 1, "{protocol}: it was asked once");
        assert_eq!(
            (&scouts[0]["depth"], &scouts[0]["user"]["id"]),
            (&json!(1), &json!("u-7")),
            "{:#}",
            scouts[0]
        );
        let used = |state: &Value| state["tokens"]["used"].as_i64().unwrap();
        assert!(used(&scouts[0]) > 0 && used(&front) > used(&scouts[0]), "{protocol}: {front:#}");
        assert!(scouts[0]["tokens"]["limit"].as_i64().unwrap() < 4000, "{:#}", scouts[0]);
        assert_eq!(front["tokens"]["reserved"], 0, "{front:#}");
        assert_eq!(models.count(), 3, "{protocol}: no model was called twice");
        near.stop().await;
        far.stop().await;
    }
}

/// Issue 7, "Cancel": cancelling the job cancels the remote call. A server that is no peer is called too, without
/// depth, budget and user.
#[tokio::test]
async fn a_cancelled_job_cancels_its_remote_call() {
    for (protocol, place) in PROTOCOLS {
        let models = ModelServer::start(script(Gate::default())).await;
        let far = Site::start(&models.url, "", &[SCOUT]).await;
        let near = Site::start(&models.url, &remote(protocol, place, &far.url, ""), &[FRONT]).await;
        let job = near.push("front").await;
        models.seen(2).await;
        // The remote request's id is stored, so the call is awaited.
        let engagement = near.engagement(&job).await["engagement_id"].as_str().unwrap().to_owned();
        let calls = format!("/engagements/{engagement}/tool-calls");
        until("the remote call is stored", async || {
            near.get(&calls).await.to_string().contains("\"handle\"")
        })
        .await;
        let (status, body) = near.send(Method::POST, &format!("/ojs/v1/jobs/{job}/cancel"), &json!({})).await;
        assert!(status < 300, "{body}");
        near.in_state(&job, &["cancelled"]).await;
        until("the remote call is cancelled", async || {
            far.engagements("scout").await.iter().all(|scout| scout["status"] == "cancelled")
        })
        .await;
        let scouts = far.engagements("scout").await;
        assert_eq!((scouts.len(), &scouts[0]["depth"]), (1, &json!(0)), "{protocol}: {scouts:#?}");
        near.stop().await;
        far.stop().await;
    }
}

/// Issue 7: a peer may end the requests that it began. It may not change settings or other runs, and
/// delegation headers of other clients are refused.
#[ignore = "long: ten seconds of polls"]
#[tokio::test]
async fn a_peer_has_its_own_requests_and_no_others() {
    let models = ModelServer::start(script(Gate::default())).await;
    let far = Site::start(&models.url, PEERS, &[SCOUT]).await;
    let process = format!("{}/agents/scout/process", far.url);
    let begun =
        far.http.post(&process).json(&json!({"input": "a", "request_id": "r-1"})).send().await.unwrap();
    assert_eq!(begun.status(), 202);
    let peer = |body: Value| far.http.post(&process).bearer_auth(super::KEY).json(&body).send();
    for (body, status) in [
        (json!({"type": "CancelRequest", "request_id": "r-1"}), 404),
        (json!({"args": {"model": "m"}}), 403),
        (json!({"input": "b", "run_id": begun.headers()["x-run-id"].to_str().unwrap()}), 403),
        (json!({"input": "b", "request_id": "r-2"}), 202),
        (json!({"type": "CancelRequest", "request_id": "r-2"}), 202),
    ] {
        assert_eq!(peer(body.clone()).await.unwrap().status(), status, "{body}");
    }
    let deep = far.http.post(&process).json(&json!({"input": "c"})).header("turnstone-delegation-depth", "1");
    assert_eq!(deep.send().await.unwrap().status(), 403, "only a peer may set the depth");
    let too_deep = far.http.post(&process).bearer_auth(super::KEY).json(&json!({"input": "c"}));
    let too_deep = too_deep.header("turnstone-delegation-depth", "11").send().await.unwrap();
    assert_eq!(too_deep.status(), 422);
    let get = |path: &str| far.http.get(format!("{}{path}", far.url)).bearer_auth(super::KEY).send();
    assert_eq!(get("/agents/scout/describe").await.unwrap().status(), 200);
    assert_eq!(get("/a2a/scout/.well-known/agent-card.json").await.unwrap().status(), 200);
    assert_eq!(get("/agents/scout/runs").await.unwrap().status(), 403);
    let run = begun.headers()["x-run-id"].to_str().unwrap();
    for (id, status) in [("r-1", 404), (run, 404), ("r-2", 200)] {
        for path in ["request", "getevents"] {
            let path = format!("/agents/scout/{path}/{id}");
            assert_eq!(get(&path).await.unwrap().status(), status, "{path}");
        }
    }
    let again = peer(json!({"input": "a", "request_id": "r-1"})).await.unwrap();
    assert_eq!(again.status(), 409, "the same name and body do not make a client's request a peer's");
    let mine = far.http.post(format!("{}/a2a/scout", far.url)).header("a2a-version", "1.0");
    let task = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": begun.headers()["x-request-id"].to_str().unwrap()}});
    let foreign: Value = mine.bearer_auth(super::KEY).json(&task).send().await.unwrap().json().await.unwrap();
    assert_eq!(foreign["error"]["code"], -32001, "{foreign}");
    far.stop().await;
}
