//! Acknowledgements, and jobs that are released (OJS HTTP binding §5.5).

use super::super::on_sqlite_first;
use super::{ack, fetch, held, nack, push, retry};
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    an_acknowledged_job_is_completed_with_its_result,
    a_result_is_kept_as_it_was_sent,
    only_an_active_job_can_be_ended,
    only_its_worker_ends_a_job,
    of_many_concurrent_acknowledgements_one_succeeds,
    many_acknowledgements_at_once_all_count,
    an_acknowledgement_removes_the_error,
    a_released_job_keeps_its_attempts,
    wrong_bodies_are_refused_before_anything_changes,
];

async fn an_acknowledged_job_is_completed_with_its_result(server: &OjsServer) {
    let id = held(server, json!({})).await;
    let body = json!({"job_id": id, "worker_id": "w", "result": {"sent": 3}});
    let reply = server.post("/ojs/v1/workers/ack", &body).await.expect(200).json();
    assert_eq!((&reply["acknowledged"], &reply["state"]), (&json!(true), &json!("completed")));
    assert_eq!((&reply["id"], &reply["job_id"]), (&json!(id), &json!(id)));
    let job = server.job(&id).await;
    assert_eq!(reply["job"], job);
    assert_eq!((&job["result"], &job["completed_at"]), (&json!({"sent": 3}), &reply["completed_at"]));
    assert!(job["started_at"].is_string() && job.get("error").is_none());
    let by_path = held(server, json!({})).await;
    let reply = server.post_text(&format!("/ojs/v1/jobs/{by_path}/ack"), "").await.expect(200).json();
    assert_eq!(reply["job"]["state"], "completed");
}

async fn a_result_is_kept_as_it_was_sent(server: &OjsServer) {
    for result in ["1e400", "1000000000000000000000000000000", "\"x\"", "[0.1,{\"b\":1,\"a\":null}]", "null"]
    {
        let id = held(server, json!({})).await;
        let body = format!("{{\"job_id\":\"{id}\",\"result\":{result}}}");
        server.post_text("/ojs/v1/workers/ack", body).await.expect(200);
        let shown = server.get(&format!("/ojs/v1/jobs/{id}")).await.text;
        assert!(shown.contains(&format!("\"result\":{result}")), "{shown}");
    }
}

/// Returns a job in each state but active.
async fn others(server: &OjsServer) -> Vec<(&'static str, String)> {
    let done = held(server, json!({})).await;
    ack(server, &done).await.expect(200);
    let failed = held(server, retry(2)).await;
    nack(server, &failed, json!({"code": "e"})).await.expect(200);
    let lost = held(server, retry(1)).await;
    nack(server, &lost, json!({"code": "e"})).await.expect(200);
    let cancelled = held(server, json!({})).await;
    server.delete(&format!("/ojs/v1/jobs/{cancelled}")).await.expect(200);
    let scheduled = push(server, json!({"delay_until": "+PT1H"})).await;
    let available = push(server, json!({})).await;
    vec![
        ("completed", done),
        ("retryable", failed),
        ("discarded", lost),
        ("cancelled", cancelled),
        ("scheduled", scheduled),
        ("available", available),
    ]
}

async fn only_an_active_job_can_be_ended(server: &OjsServer) {
    for (state, id) in others(server).await {
        let before = server.job(&id).await;
        assert_eq!(before["state"], state);
        let requeue = server.post(&format!("/ojs/v1/jobs/{id}/nack"), &json!({"requeue": true})).await;
        for refused in [ack(server, &id).await, nack(server, &id, json!({"code": "e"})).await, requeue] {
            assert_eq!(refused.expect(409).code(), "conflict", "{state}");
        }
        assert_eq!(server.job(&id).await, before);
    }
    let unknown = "0190a7b2-0000-7000-8000-000000000000";
    assert_eq!(ack(server, unknown).await.expect(404).code(), "not_found");
    assert_eq!(nack(server, unknown, json!({"code": "e"})).await.expect(404).code(), "not_found");
}

async fn only_its_worker_ends_a_job(server: &OjsServer) {
    let id = held(server, json!({})).await;
    for (path, body) in [
        ("ack", json!({"job_id": id, "worker_id": "other"})),
        ("nack", json!({"job_id": id, "worker_id": "other", "error": {"code": "e"}})),
        ("nack", json!({"job_id": id, "worker_id": "other", "requeue": true})),
    ] {
        let refused = server.post(&format!("/ojs/v1/workers/{path}"), &body).await.expect(409);
        assert_eq!(refused.json()["error"]["details"]["worker_id"], "w");
    }
    assert_eq!(server.job(&id).await["state"], "active");
    ack(server, &id).await.expect(200);
}

async fn of_many_concurrent_acknowledgements_one_succeeds(server: &OjsServer) {
    let id = held(server, json!({})).await;
    let requested = (0..8).map(|_| ack(server, &id));
    let mut statuses: Vec<u16> =
        futures::future::join_all(requested).await.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
}

async fn many_acknowledgements_at_once_all_count(server: &OjsServer) {
    for _ in 0..40 {
        push(server, retry(3)).await;
    }
    let jobs = fetch(server, json!({"count": 40})).await;
    assert_eq!(jobs.len(), 40);
    let ended = jobs.iter().enumerate().map(|(n, job)| async move {
        let id = job["id"].as_str().unwrap();
        let body = match n % 4 {
            0 => json!({"job_id": id, "error": {"code": format!("e{n}")}}),
            1 => json!({"job_id": id, "requeue": true}),
            _ => return server.post("/ojs/v1/workers/ack", &json!({"job_id": id, "result": n})).await,
        };
        server.post("/ojs/v1/workers/nack", &body).await
    });
    let replies = futures::future::join_all(ended).await;
    for (n, (reply, job)) in replies.into_iter().zip(&jobs).enumerate() {
        let reply = reply.expect(200).json();
        let expected = ["retryable", "available", "completed", "completed"][n % 4];
        assert_eq!((&reply["id"], &reply["state"]), (&job["id"], &json!(expected)));
        let stored = server.job(job["id"].as_str().unwrap()).await;
        assert_eq!(stored["state"], expected);
        if n % 4 == 0 {
            assert_eq!(stored["error"]["code"], format!("e{n}"));
        }
        if n % 4 > 1 {
            assert_eq!(stored["result"], n);
        }
    }
}

async fn an_acknowledgement_removes_the_error(server: &OjsServer) {
    let id = held(server, retry(3)).await;
    nack(server, &id, json!({"code": "e1"})).await.expect(200);
    server.pass_ms(1_000).await;
    let again = fetch(server, json!({})).await.remove(0);
    assert_eq!((&again["attempt"], &again["error"]["code"]), (&json!(2), &json!("e1")));
    ack(server, &id).await.expect(200);
    assert_eq!(server.job(&id).await.get("error"), None);
}

async fn a_released_job_keeps_its_attempts(server: &OjsServer) {
    let id = held(server, retry(1)).await;
    for round in 0..3 {
        // The error of a requeued job is ignored.
        let body = json!({"job_id": id, "requeue": true, "error": {"code": "cancelled", "retryable": false}});
        let reply = server.post("/ojs/v1/workers/nack", &body).await.expect(200).json();
        assert_eq!((&reply["state"], &reply["attempt"]), (&json!("available"), &json!(0)), "{round}");
        let job = server.job(&id).await;
        assert_eq!((&job["state"], job.get("error")), (&json!("available"), None));
        assert_eq!(fetch(server, json!({})).await[0]["attempt"], 1);
    }
}

async fn wrong_bodies_are_refused_before_anything_changes(server: &OjsServer) {
    let id = held(server, json!({})).await;
    let refused: [(&str, Value, &str); 6] = [
        ("workers/ack", json!({}), "job_id"),
        ("workers/nack", json!({"error": {"code": "e"}}), "job_id"),
        ("workers/nack", json!({"job_id": id}), "error"),
        ("workers/nack", json!({"job_id": id, "error": "it broke"}), "error"),
        ("workers/nack", json!({"job_id": id, "error": {"code": "e", "details": []}}), "error"),
        ("workers/nack", json!({"job_id": id, "requeue": "yes"}), "requeue"),
    ];
    for (path, body, field) in refused {
        let reply = server.post(&format!("/ojs/v1/{path}"), &body).await.expect(400);
        assert_eq!(reply.json()["error"]["details"]["field"], field, "{body}");
    }
    assert_eq!(server.job(&id).await["state"], "active");
}
