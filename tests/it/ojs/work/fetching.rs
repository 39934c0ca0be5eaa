//! Which worker receives which jobs (OJS HTTP binding §5.4).

use super::super::on_every_store;
use super::{beat, fetch, held, push};
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_every_store![
    a_fetched_job_is_active_and_complete,
    several_jobs_come_queue_by_queue_in_order,
    nothing_to_do_is_an_empty_list,
    of_two_concurrent_fetches_one_gets_the_job,
    the_left_queue_goes_first_even_when_named_twice,
    wrong_requests_are_refused,
    a_draining_worker_gets_nothing,
    a_tenants_worker_gets_its_own_jobs,
    agent_jobs_are_not_fetched_over_http,
    a_workers_id_is_optional,
];

fn types(jobs: &[Value]) -> Vec<&str> {
    jobs.iter().map(|job| job["type"].as_str().unwrap()).collect()
}

async fn a_fetched_job_is_active_and_complete(server: &OjsServer) {
    let sent = json!({"type": "a.b", "args": [1, {"b": [null]}], "meta": {"k": "v"}, "x_more": 3,
                      "options": {"queue": "q", "priority": 7}});
    let id = server.push(&sent).await;
    let mut job = fetch(server, json!({})).await.remove(0);
    assert_eq!((&job["id"], &job["state"], &job["attempt"]), (&json!(id), &json!("active"), &json!(1)));
    for key in ["type", "args", "meta", "x_more"] {
        assert_eq!(job[key], sent[key], "{key}");
    }
    assert_eq!((&job["worker_id"], &job["priority"]), (&json!("w"), &json!(7)));
    assert!(job["started_at"].is_string());
    assert!(job.as_object_mut().unwrap().remove("ext_lease_token").is_some());
    assert_eq!(server.job(&id).await, job);
}

async fn several_jobs_come_queue_by_queue_in_order(server: &OjsServer) {
    for (queue, priority, job_type) in
        [("b", 0, "b.first"), ("a", 0, "a.first"), ("a", 5, "a.urgent"), ("a", 0, "a.second")]
    {
        let options = json!({"queue": queue, "priority": priority});
        server.push(&json!({"type": job_type, "args": [], "options": options})).await;
    }
    let jobs = fetch(server, json!({"queues": ["a", "b"], "count": 10})).await;
    assert_eq!(types(&jobs), ["a.urgent", "a.first", "a.second", "b.first"]);
    assert!(fetch(server, json!({"queues": ["a", "b"]})).await.is_empty());
}

async fn nothing_to_do_is_an_empty_list(server: &OjsServer) {
    let reply = server.post("/ojs/v1/workers/fetch", &json!({"queues": ["nobody.knows"]})).await.expect(200);
    assert_eq!(reply.json(), json!({"jobs": []}));
}

async fn of_two_concurrent_fetches_one_gets_the_job(server: &OjsServer) {
    for _ in 0..5 {
        push(server, json!({})).await;
        let requested = (0..4).map(|n| fetch(server, json!({"worker_id": format!("w{n}")})));
        let given: Vec<usize> = futures::future::join_all(requested).await.iter().map(Vec::len).collect();
        assert_eq!(given.iter().sum::<usize>(), 1, "{given:?}");
    }
}

async fn the_left_queue_goes_first_even_when_named_twice(server: &OjsServer) {
    for queue in ["a", "b", "a"] {
        server.push(&json!({"type": format!("{queue}.x"), "args": [], "options": {"queue": queue}})).await;
    }
    let jobs = fetch(server, json!({"queues": ["b", "a", "b"], "count": 2})).await;
    assert_eq!(types(&jobs), ["b.x", "a.x"]);
}

async fn wrong_requests_are_refused(server: &OjsServer) {
    for (body, field) in [
        (json!({}), "queues"),
        (json!({"queues": []}), "queues"),
        (json!({"queues": "q"}), "queues"),
        (json!({"queues": ["q"], "count": 0}), "count"),
        (json!({"queues": ["q"], "visibility_timeout_ms": -1}), "visibility_timeout_ms"),
        (json!({"queues": ["q"], "worker_id": 7}), "worker_id"),
    ] {
        let reply = server.post("/ojs/v1/workers/fetch", &body).await.expect(400);
        assert_eq!(reply.json()["error"]["details"]["field"], field, "{body}");
    }
    assert_eq!(server.post_text("/ojs/v1/workers/fetch", "").await.expect(400).code(), "invalid_payload");
}

async fn a_draining_worker_gets_nothing(server: &OjsServer) {
    push(server, json!({})).await;
    for state in ["drain", "quiet", "terminate"] {
        let said = json!({"worker_id": "w", "state": state, "active_jobs": 0});
        let reply = server.post("/ojs/v1/workers/beat", &said).await.expect(200).json();
        assert_eq!((&reply["acknowledged"], &reply["state"]), (&json!(true), &json!("draining")));
        assert!(fetch(server, json!({})).await.is_empty(), "{state}");
    }
    beat(server, json!({"worker_id": "w", "state": "running"})).await;
    let remote = &server.fleet.store.remote;
    assert!(remote.direct("w", Some(turnstone_store::Directive::Quiet)).await.unwrap());
    assert!(fetch(server, json!({})).await.is_empty());
    remote.direct("w", None).await.unwrap();
    assert_eq!(fetch(server, json!({})).await.len(), 1);
}

async fn a_tenants_worker_gets_its_own_jobs(server: &OjsServer) {
    let job = |tenant: &str| json!({"type": format!("{tenant}.x"), "args": [], "options": {"queue": "q"}});
    let mut ids = Vec::new();
    for tenant in ["ann", "bob"] {
        let body = job(tenant).to_string();
        let headers = [("X-OJS-Tenant", tenant)];
        let reply = server.send(reqwest::Method::POST, "/ojs/v1/jobs", &headers, body).await.expect(201);
        ids.push(reply.json()["id"].as_str().unwrap().to_owned());
    }
    let body = json!({"queues": ["q"], "count": 9}).to_string();
    let headers = [("X-OJS-Tenant", "bob")];
    let path = "/ojs/v1/workers/fetch";
    let reply = server.send(reqwest::Method::POST, path, &headers, body.clone()).await.expect(200).json();
    assert_eq!(types(reply["jobs"].as_array().unwrap()), ["bob.x"]);
    let (of_ann, body) = (format!("/ojs/v1/jobs/{}/ack", ids[1]), "{}");
    let headers = [("X-OJS-Tenant", "ann")];
    assert_eq!(
        server.send(reqwest::Method::POST, &of_ann, &headers, body).await.expect(404).code(),
        "not_found"
    );
    assert_eq!(
        types(&fetch(server, json!({"count": 9})).await),
        ["ann.x"],
        "without the header everything is seen"
    );
}

async fn agent_jobs_are_not_fetched_over_http(server: &OjsServer) {
    let agent = json!({"type": "ai.agent.x", "args": [], "ext_agent_model": "m", "options": {"queue": "q"}});
    server.push(&agent).await;
    assert!(fetch(server, json!({})).await.is_empty());
}

async fn a_workers_id_is_optional(server: &OjsServer) {
    let id = push(server, json!({})).await;
    let body = json!({"queues": ["q"]});
    let reply = server.post("/ojs/v1/workers/fetch", &body).await.expect(200).json();
    assert_eq!(reply["jobs"][0]["id"], id.as_str());
    assert_eq!(reply["jobs"][0].get("worker_id"), None);
    let ack = json!({"job_id": id, "worker_id": "anybody"});
    server.post("/ojs/v1/workers/ack", &ack).await.expect(200);
    let named = held(server, json!({})).await;
    let ack = json!({"job_id": named, "worker_id": "anybody"});
    assert_eq!(server.post("/ojs/v1/workers/ack", &ack).await.expect(409).code(), "conflict");
}
