//! Enqueue, read, cancel, list.

use super::server::Server;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

const ID: &str = "0190a7b2-0000-7000-8000-000000000001";

fn research() -> Value {
    json!({
        "type": "agent.research",
        "args": ["Compare three ways of storing heat"],
        "options": {"queue": "ai-agents", "timeout_ms": 120_000},
        "ext_agent_model": "gpt-4o",
        "ext_agent_fallback_models": ["claude-3.5-sonnet", "gpt-4o-mini"],
        "ext_agent_provider": "openai",
        "ext_agent_temperature": 0.7,
        "ext_agent_max_tokens": 4096,
        "ext_agent_token_budget": 50_000,
        "ext_agent_tools": [{"name": "web_search", "description": "Find pages", "parameters": {"type": "object"}}],
        "ext_agent_tool_choice": "auto",
        "ext_agent_output_schema": {"type": "object", "required": ["summary"]},
        "ext_agent_output_format": "json",
        "ext_agent_unknown": {"big": 9_007_199_254_740_993_i64, "none": [null]},
    })
}

#[tokio::test]
async fn an_agent_job_is_accepted_and_read_back_field_for_field() {
    let server = Server::start().await;
    let reply = server.post("/ojs/v1/jobs", research().to_string()).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let sent = reply.json();
    let path = format!("/ojs/v1/jobs/{}", sent["id"].as_str().unwrap());
    assert_eq!(reply.header("location"), path);
    assert_eq!((&sent["state"], &sent["job"]["state"]), (&json!("available"), &json!("available")));

    let read = server.get(&path).await;
    for (field, value) in research().as_object().unwrap() {
        assert_eq!(&read.json()[field], value, "{field}");
    }
    let mut stored = sent.clone();
    let remarks = stored.as_object_mut().unwrap().shift_remove("warnings");
    assert_eq!(remarks, Some(json!(["ext_agent_unknown means nothing here: it is kept and does nothing"])));
    assert_eq!(read.json(), stored, "the answer to the enqueue is the job as it is stored");
    assert_eq!(server.get(&path).await.text, read.text);
}

#[tokio::test]
async fn an_id_is_accepted_once() {
    let server = Server::start().await;
    let job = json!({"type": "a.b", "args": [], "id": ID});
    server.push(&job).await;
    let reply = server.post("/ojs/v1/jobs", job.to_string()).await;
    assert_eq!((reply.status.as_u16(), reply.code().as_str()), (409, "duplicate"));
    assert_eq!(server.stored_jobs().await, 1);
}

#[tokio::test]
async fn bad_bodies_are_refused_and_nothing_is_stored() {
    let server = Server::start().await;
    let deep = format!("{{\"type\":\"a\",\"args\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let large = json!({"type": "a", "args": ["x".repeat(2 * 1024 * 1024)]}).to_string();
    for (body, status, code) in [
        ("".to_owned(), 400, "invalid_payload"),
        ("{".to_owned(), 400, "invalid_payload"),
        ("[]".to_owned(), 400, "invalid_payload"),
        (deep, 400, "invalid_payload"),
        (large, 413, "payload_too_large"),
        (r#"{"args":[]}"#.to_owned(), 400, "invalid_request"),
        (r#"{"type":"a","args":{}}"#.to_owned(), 400, "invalid_request"),
        (r#"{"type":"a","args":[],"id":"x"}"#.to_owned(), 400, "invalid_request"),
        (r#"{"type":"a","args":[],"specversion":"9"}"#.to_owned(), 422, "unsupported"),
        (
            r#"{"type":"a","args":[],"options":{"retry":{"max_attempts":-1}}}"#.to_owned(),
            422,
            "validation_error",
        ),
        (r#"{"type":"a","args":[],"ext_agent_temperature":3}"#.to_owned(), 400, "AGENT_INVALID_PARAMETER"),
        (r#"{"type":"a","args":[],"ext_agent_token_budget":-1}"#.to_owned(), 400, "AGENT_INVALID_PARAMETER"),
        (
            r#"{"type":"a","args":[],"ext_agent_output_schema":{"type":1}}"#.to_owned(),
            400,
            "AGENT_INVALID_PARAMETER",
        ),
        (
            r#"{"type":"a","args":[],"ext_agent_delegation_depth":11}"#.to_owned(),
            422,
            "AGENT_MAX_DELEGATION_DEPTH",
        ),
        (r#"{"type":"a","args":[],"meta":{"agent":"nobody"}}"#.to_owned(), 400, "AGENT_INVALID_PARAMETER"),
    ] {
        let start: String = body.chars().take(80).collect();
        let reply = server.post("/ojs/v1/jobs", body).await;
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (status, code), "{start}: {}", reply.text);
    }
    let request = Request::post("/ojs/v1/jobs").header("Content-Type", "text/plain");
    let reply = server.request(request.body(Body::from(r#"{"type":"a","args":[]}"#)).unwrap()).await;
    assert_eq!((reply.status.as_u16(), reply.code().as_str()), (400, "invalid_request"));
    assert_eq!(server.stored_jobs().await, 0);
}

#[tokio::test]
async fn a_job_is_cancelled_once() {
    let server = Server::start().await;
    server.push(&json!({"type": "a.b", "args": [], "id": ID})).await;
    let reply =
        server.request(Request::delete(format!("/ojs/v1/jobs/{ID}")).body(Body::empty()).unwrap()).await;
    let job = reply.json();
    assert_eq!((reply.status.as_u16(), &job["job"]["state"]), (200, &json!("cancelled")));
    assert_eq!((&job["previous_state"], job.get("completed_at")), (&json!("available"), None));
    assert!(job["cancelled_at"].is_string());
    let again = server.post(&format!("/ojs/v1/jobs/{ID}/cancel"), "{}").await;
    assert_eq!((again.status.as_u16(), again.code().as_str()), (409, "conflict"));
    assert_eq!(again.json()["error"]["details"]["state"], "cancelled");
    assert_eq!(server.post("/ojs/v1/jobs/none/cancel", "").await.status, 404);
}

#[tokio::test]
async fn jobs_are_listed_by_state_queue_and_type() {
    let server = Server::start().await;
    for (job_type, queue, options) in [("a.x", "q1", "+PT1H"), ("a.x", "q2", ""), ("a.y", "q1", "")] {
        let mut job = json!({"type": job_type, "args": [], "options": {"queue": queue}});
        if !options.is_empty() {
            job["options"]["delay_until"] = options.into();
        }
        server.push(&job).await;
    }
    let total = async |query: &str| {
        let list = server.get(&format!("/ojs/v1/admin/jobs?{query}")).await.json();
        (list["pagination"]["total"].as_u64().unwrap(), list["items"].as_array().unwrap().len())
    };
    assert_eq!(total("").await, (3, 3));
    assert_eq!(total("state=scheduled").await, (1, 1));
    assert_eq!(total("queue=q1&type=a.y").await, (1, 1));
    assert_eq!(total("per_page=2&page=2").await, (3, 1));
    assert_eq!(total("queue=none").await, (0, 0));
}
