//! A job, and lists of jobs, for operators and clients.

use super::super::on_sqlite_first;
use super::{fail, ids, mortal, stumble};
use serde_json::json;
use turnstone_tests::OjsServer;

async fn an_operator_sees_the_bare_job(server: &OjsServer) {
    let id = server.push(&mortal("mail", "email.send")).await;
    let job = server.get(&format!("/ojs/v1/admin/jobs/{id}")).await.expect(200).json();
    assert_eq!(
        (&job["id"], &job["type"], &job["queue"], &job["state"]),
        (&json!(id), &json!("email.send"), &json!("mail"), &json!("available"))
    );
    assert!(job.get("job").is_none(), "{job}");
    assert_eq!(job, server.job(&id).await);
    server.get("/ojs/v1/admin/jobs/nobody").await.expect(404);
}

async fn an_operator_cancels_once(server: &OjsServer) {
    let id = server.push(&mortal("mail", "email.send")).await;
    let path = format!("/ojs/v1/admin/jobs/{id}/cancel");
    let reply = server.post(&path, &json!({})).await.expect(200).json();
    assert_eq!(
        (&reply["job"]["state"], &reply["previous_state"]),
        (&json!("cancelled"), &json!("available"))
    );
    assert_eq!(server.post(&path, &json!({})).await.expect(409).code(), "conflict");
    server.post("/ojs/v1/admin/jobs/nobody/cancel", &json!({})).await.expect(404);
}

async fn an_operator_retries_a_failed_job(server: &OjsServer) {
    let waits = server.push(&json!({"type": "a.b", "args": []})).await;
    stumble(server, &waits).await;
    let reply =
        server.post(&format!("/ojs/v1/admin/jobs/{waits}/retry"), &json!({})).await.expect(200).json();
    assert_eq!(
        (&reply["state"], &reply["attempt"]),
        (&json!("available"), &json!(1)),
        "it keeps its history"
    );
    // A failed job that was not kept as a dead letter can be retried until it is deleted.
    let ended = server.push(&json!({"type": "a.b", "args": []})).await;
    fail(server, &ended).await;
    let reply =
        server.post(&format!("/ojs/v1/admin/jobs/{ended}/retry"), &json!({})).await.expect(200).json();
    assert_eq!((&reply["state"], &reply["attempt"]), (&json!("available"), &json!(0)));
    assert_eq!(
        server.post(&format!("/ojs/v1/admin/jobs/{ended}/retry"), &json!({})).await.expect(409).code(),
        "conflict"
    );
    server.post("/ojs/v1/admin/jobs/nobody/retry", &json!({})).await.expect(404);
}

async fn an_expired_job_may_be_retried_without_its_deadline(server: &OjsServer) {
    let id = server.push(&json!({"type": "a.b", "args": [], "options": {"expires_at": "+PT2S"}})).await;
    server.pass_ms(3_000).await;
    assert_eq!(server.job(&id).await["state"], "discarded");
    server.post(&format!("/ojs/v1/admin/jobs/{id}/retry"), &json!({})).await.expect(200);
    server.pass_ms(3_000).await;
    assert_eq!(server.job(&id).await["state"], "available");
}

async fn lists_are_filtered_ordered_and_cut(server: &OjsServer) {
    let mut pushed = Vec::new();
    for (at, priority) in [5, -5, 0].into_iter().enumerate() {
        let queue = if at == 2 { "b" } else { "a" };
        let options = json!({"queue": queue, "priority": priority});
        pushed.push(server.push(&json!({"type": format!("t.n{at}"), "args": [], "options": options})).await);
        server.fleet.clock.advance_ms(60_000);
    }
    let named = |picks: &[usize]| picks.iter().map(|at| pushed[*at].clone()).collect::<Vec<_>>();
    let begun = server.job(&pushed[1]).await["created_at"].as_str().unwrap().to_owned();
    for (query, expected) in [
        (String::new(), vec![2, 1, 0]),
        ("order=asc".into(), vec![0, 1, 2]),
        ("sort=priority".into(), vec![0, 2, 1]),
        ("sort=priority&order=asc".into(), vec![1, 2, 0]),
        ("queue=a".into(), vec![1, 0]),
        ("type=t.n2".into(), vec![2]),
        ("state=active".into(), vec![]),
        (format!("since={begun}"), vec![2, 1]),
        (format!("until={begun}"), vec![0]),
    ] {
        let data = server.get(&format!("/ojs/v1/jobs?{query}")).await.expect(200).json();
        assert_eq!(ids(&data["jobs"]), named(&expected), "{query}");
        let admin = server.get(&format!("/ojs/v1/admin/jobs?{query}")).await.expect(200).json();
        assert_eq!(ids(&admin["items"]), named(&expected), "{query}");
        assert_eq!(admin["pagination"]["total"], expected.len(), "{query}");
    }
    let part = server.get("/ojs/v1/jobs?limit=1&offset=1").await.expect(200).json();
    assert_eq!((ids(&part["jobs"]), &part["pagination"]["has_more"]), (named(&[1]), &json!(true)));
    for wrong in ["state=done", "sort=colour", "order=up", "limit=201", "since=now", "cursor=x"] {
        server.get(&format!("/ojs/v1/jobs?{wrong}")).await.expect(400);
    }
}

on_sqlite_first![
    an_operator_sees_the_bare_job,
    an_operator_cancels_once,
    an_operator_retries_a_failed_job,
    an_expired_job_may_be_retried_without_its_deadline,
    lists_are_filtered_ordered_and_cut,
];
