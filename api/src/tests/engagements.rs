//! Engagements and reviews, advanced by hand as a worker would.

use super::server::Server;
use serde_json::{Value, json};
use turnstone_domain::message::{Message, Role};
use turnstone_domain::review::{NewReview, ReviewKind, ReviewPlan};
use turnstone_domain::tool_call::{ToolCallMove, ToolOutcome};
use turnstone_domain::{Clock, Settlement, TurnWrite, Wait};
use turnstone_store::{ClaimRequest, JobKind};

async fn get(server: &Server, path: &str) -> Value {
    let reply = server.get(path).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text);
    reply.json()
}

/// Enqueues an agent job, lets a worker make a withheld call, plan a second one, and park for a review of it.
async fn parked(server: &Server) -> String {
    let job = server
        .push(&json!({"type": "agent.a", "args": ["hi"], "ext_agent_tools": [{"name": "web_search"}]}))
        .await;
    let now = server.clock.now();
    let request = ClaimRequest {
        kind: JobKind::Agent,
        queues: vec!["default".into()],
        limit: 1,
        worker_id: "w".into(),
        lease_ms: 30_000,
        tenant: None,
        runtime_tags: None,
        now,
    };
    let claim = server.store.ledger.claim(request).await.unwrap().remove(0);
    let intend = |call: &str, position, sent| ToolCallMove::Intend {
        call_id: call.into(),
        turn: 1,
        position,
        name: "web_search".into(),
        input: json!({"query": call}),
        idempotent: false,
        sent,
    };
    let outcome = ToolOutcome::Success { output: json!("classified") };
    let done =
        ToolCallMove::Settle { call_id: "c1".into(), outcome, handled: None, duration_ms: 4, withheld: true };
    let write = TurnWrite {
        messages: vec![
            (1, Message::text(Role::User, "hi").into()),
            (1, Message::tool("c1".into(), "classified").into()),
        ],
        tool_calls: vec![intend("c1", 0, true), done, intend("c2", 1, false)],
        ..TurnWrite::default()
    };
    server.store.ledger.checkpoint(&claim.lease, write, now, 30_000).await.unwrap();
    let review = NewReview {
        id: "r1".into(),
        turn: 1,
        call_id: "c2".into(),
        kind: ReviewKind::Input,
        reviewer: "boss".into(),
        question: json!({"tool": "web_search"}),
        arguments_hash: "h".into(),
        deadline_at: None,
        plan: ReviewPlan::default(),
        asked: None,
    };
    let park = Settlement::Park { wait: Wait::Review(review) };
    server.store.ledger.settle(&claim.lease, TurnWrite::default(), park, now).await.unwrap();
    job["ext_agent_engagement_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_new_engagement_is_queued_and_empty() {
    let server = Server::start().await;
    let job = server
        .push(&json!({"type": "agent.a", "args": ["hi"], "ext_agent_token_budget": 100, "meta": {"user": {"id": "u-1"}}}))
        .await;
    let id = job["ext_agent_engagement_id"].as_str().unwrap();
    let state = get(&server, &format!("/engagements/{id}")).await;
    assert_eq!(
        (&state["engagement_id"], &state["status"], &state["job_id"]),
        (&json!(id), &json!("queued"), &job["id"])
    );
    assert_eq!(state["tokens"], json!({"used": 0, "reserved": 0, "limit": 100, "left": 100}));
    assert_eq!(
        (&state["awaiting"], &state["results"], &state["error"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(get(&server, &format!("/engagements/{id}/messages")).await["messages"], json!([]));
    assert_eq!(get(&server, &format!("/engagements/{id}/checkpoints")).await["checkpoints"], json!([]));
    assert_eq!(get(&server, &format!("/engagements/{id}/tool-calls")).await["tool_calls"], json!([]));
    let audit = get(&server, &format!("/engagements/{id}/audit")).await;
    assert_eq!(audit["engagement"]["user"], json!({"id": "u-1", "email": null}));
    assert_eq!(audit["engagement"]["history"]["_total"], 0);
}

#[tokio::test]
async fn a_parked_engagement_says_what_it_waits_for_and_one_answer_counts() {
    let server = Server::start().await;
    let id = parked(&server).await;
    let state = get(&server, &format!("/engagements/{id}")).await;
    assert_eq!(
        (&state["status"], &state["awaiting"]["review_id"]),
        (&json!("waiting-for-review"), &json!("r1"))
    );

    let open = get(&server, "/reviews?state=open").await;
    assert_eq!((&open["items"][0]["id"], &open["items"][0]["reviewer"]), (&json!("r1"), &json!("boss")));
    assert_eq!(get(&server, "/reviews?reviewer=nobody").await["items"], json!([]));
    assert_eq!(server.post("/reviews/r1/approve", r#"{"who":"x"}"#).await.status, 400);

    let answer = server.post("/reviews/r1/approve", r#"{"by":"boss","reason":"fine"}"#).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["state"]),
        (200, &json!("approved")),
        "{}",
        answer.text
    );
    assert_eq!(answer.json()["reason"], "fine");
    let late = server.post("/reviews/r1/reject", r#"{"by":"boss"}"#).await;
    assert_eq!((late.status.as_u16(), late.code().as_str()), (409, "conflict"));
    assert_eq!(late.json()["error"]["details"]["state"], "approved");
    assert_eq!(get(&server, "/reviews/r1").await["state"], "approved");
    assert_eq!(get(&server, &format!("/engagements/{id}")).await["status"], "queued");
}

#[tokio::test]
async fn a_withheld_output_is_shown_nowhere() {
    let server = Server::start().await;
    let id = parked(&server).await;
    for part in ["", "/messages", "/tool-calls", "/audit", "/checkpoints", "/events"] {
        let text = server.get(&format!("/engagements/{id}{part}")).await.text;
        assert!(!text.contains("classified"), "{part}: {text}");
    }
    let messages = get(&server, &format!("/engagements/{id}/messages")).await;
    assert_eq!(messages["messages"][1]["content"], "(withheld)");
    let first = get(&server, &format!("/engagements/{id}/messages?limit=1")).await;
    assert_eq!((&first["cursor"], &first["has_more"]), (&json!(1), &json!(true)));
}
