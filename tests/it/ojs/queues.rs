//! Queues over HTTP: paused, bounded, limited, weighted.

use super::on_sqlite_first;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_paused_queue_takes_jobs_and_gives_none,
    statistics_exist_in_both_forms_and_for_unused_queues,
    queues_are_listed_with_their_jobs,
    a_tenant_sees_its_own_jobs_only,
    a_full_queue_answers_429_with_its_depth,
    a_batch_that_does_not_fit_is_refused_whole,
    clients_receive_a_warning_when_a_queue_fills,
    a_queue_keeps_to_its_rate_and_reports_the_remainder,
    a_limit_is_listed_as_soon_as_a_job_names_it,
    an_operator_overrides_a_limit,
    a_pool_is_returned_and_its_shares_are_counted,
    a_policy_and_settings_are_independent,
    an_invalid_queue_name_is_refused,
    an_unknown_queue_is_not_paused_by_an_operator,
    an_empty_configuration_changes_nothing,
];

fn job(queue: &str) -> Value {
    json!({"type": "a.b", "args": [], "options": {"queue": queue}})
}

/// Fetches up to `count` jobs from the queues and returns their number.
async fn fetched(server: &OjsServer, queues: &[&str], count: usize) -> usize {
    let reply = server.post("/ojs/v1/workers/fetch", &json!({"queues": queues, "count": count})).await;
    reply.expect(200).json()["jobs"].as_array().unwrap().len()
}

async fn a_paused_queue_takes_jobs_and_gives_none(server: &OjsServer) {
    for prefix in ["/ojs/v1/queues", "/ojs/v1/admin/queues"] {
        let paused =
            server.send(Method::POST, &format!("{prefix}/mail.out/pause"), &[], "").await.expect(200).json();
        assert_eq!(
            (&paused["queue"]["name"], &paused["queue"]["paused"]),
            (&json!("mail.out"), &json!(true))
        );
        assert_eq!((&paused["name"], &paused["paused"]), (&json!("mail.out"), &json!(true)));
        server.push(&job("mail.out")).await;
        assert_eq!(fetched(server, &["mail.out"], 5).await, 0);
        let shown = server.get("/ojs/v1/queues/mail.out").await.expect(200).json();
        assert_eq!(shown["queue"]["status"], "paused");
        let resumed = server.post(&format!("{prefix}/mail.out/resume"), &json!({})).await.expect(200).json();
        assert_eq!(resumed["queue"]["paused"], false);
        assert_eq!(fetched(server, &["mail.out"], 5).await, 1);
    }
}

async fn an_unknown_queue_is_not_paused_by_an_operator(server: &OjsServer) {
    for verb in ["pause", "resume"] {
        let path = format!("/ojs/v1/admin/queues/nosuch/{verb}");
        let refused = server.post(&path, &json!({})).await.expect(404);
        assert_eq!(refused.code(), "not_found");
        assert!(refused.text.contains("`nosuch`") && refused.text.contains("first job"), "{}", refused.text);
    }
    assert_eq!(server.fleet.number("SELECT count(*) FROM queues WHERE created_at > 0").await, 0);
    // The published cases pause a queue before its first job.
    server.post("/ojs/v1/queues/early/pause", &json!({})).await.expect(200);
    server.post("/ojs/v1/admin/queues/early/resume", &json!({})).await.expect(200);
}

async fn an_empty_configuration_changes_nothing(server: &OjsServer) {
    let path = "/ojs/v1/admin/queues/bounded/config";
    let config = json!({"backpressure": {"max_depth": 7}, "concurrency": 3});
    server.put(path, &config).await.expect(200);
    for body in ["", "{}", r#"{"concurency": 4}"#] {
        let refused = server.send(Method::PUT, path, &[], body).await.expect(400);
        assert!(refused.text.contains("concurrency") || body.is_empty(), "{}", refused.text);
    }
    let shown = server.get("/ojs/v1/admin/queues/bounded").await.expect(200).json();
    assert_eq!(shown["config"], config);
}

async fn statistics_exist_in_both_forms_and_for_unused_queues(server: &OjsServer) {
    server.push(&job("s")).await;
    server.push(&json!({"type": "a.b", "args": [], "options": {"queue": "s", "delay_until": "+PT9S"}})).await;
    server.push(&job("s")).await;
    assert_eq!(fetched(server, &["s"], 1).await, 1);
    let stats = server.get("/ojs/v1/queues/s/stats").await.expect(200).json();
    assert_eq!(
        (
            &stats["queue"]["name"],
            &stats["queue"]["available"],
            &stats["queue"]["active"],
            &stats["queue"]["scheduled"]
        ),
        (&json!("s"), &json!(1), &json!(1), &json!(1))
    );
    assert_eq!((&stats["stats"]["queue"], &stats["stats"]["depth"]), (&json!("s"), &json!(2)));
    assert_eq!((&stats["status"], &stats["stats"]["max_depth"]), (&json!("active"), &Value::Null));
    let unknown = server.get("/ojs/v1/queues/never-seen/stats").await.expect(200).json();
    for state in ["available", "active", "completed", "scheduled", "retryable", "discarded", "cancelled"] {
        assert_eq!(unknown["queue"][state], 0, "{state}");
    }
}

async fn queues_are_listed_with_their_jobs(server: &OjsServer) {
    for queue in ["x", "x", "y"] {
        server.push(&job(queue)).await;
    }
    let list = server.get("/ojs/v1/queues?limit=2").await.expect(200).json();
    assert_eq!(list["queues"].as_array().unwrap().len(), 2);
    assert_eq!((&list["pagination"]["has_more"], &list["pagination"]["limit"]), (&json!(true), &json!(2)));
    let all = server.get("/ojs/v1/admin/queues?per_page=100").await.expect(200).json();
    let x = all["items"].as_array().unwrap().iter().find(|item| item["name"] == "x").unwrap().clone();
    assert_eq!(
        (&x["counts"]["available"], &x["counts"]["active"], &x["state"]),
        (&json!(2), &json!(0), &json!("active"))
    );
    assert!(all["pagination"]["total"].as_u64().unwrap() >= 2);
    let one = server.get("/ojs/v1/admin/queues/x").await.expect(200).json();
    assert_eq!((&one["depth"], &one["config"]), (&json!(2), &json!({})));
    server.get("/ojs/v1/queues?limit=0").await.expect(400);
}

async fn a_tenant_sees_its_own_jobs_only(server: &OjsServer) {
    for tenant in ["acme", "acme", "other"] {
        server
            .send(Method::POST, "/ojs/v1/jobs", &[("x-ojs-tenant", tenant)], job("t").to_string())
            .await
            .expect(201);
    }
    server.push(&job("nobodys")).await;
    let acme = [("x-ojs-tenant", "acme")];
    let stats = server.send(Method::GET, "/ojs/v1/queues/t/stats", &acme, "").await.expect(200).json();
    assert_eq!(stats["queue"]["available"], 2);
    let list = server.send(Method::GET, "/ojs/v1/queues", &acme, "").await.expect(200).json();
    let names: Vec<&str> =
        list["queues"].as_array().unwrap().iter().map(|q| q["name"].as_str().unwrap()).collect();
    assert_eq!((names, &list["pagination"]["total"]), (vec!["t"], &json!(1)));
}

async fn bound(server: &OjsServer, queue: &str, config: Value) {
    server.put(&format!("/ojs/v1/admin/queues/{queue}/config"), &config).await.expect(200);
}

async fn a_full_queue_answers_429_with_its_depth(server: &OjsServer) {
    bound(server, "full", json!({"backpressure": {"max_depth": 2, "strategy": "reject"}})).await;
    server.push(&job("full")).await;
    server.push(&job("full")).await;
    let refused = server.post("/ojs/v1/jobs", &job("full")).await.expect(429);
    assert_eq!(refused.code(), "QUEUE_FULL");
    assert_eq!((refused.header("x-ojs-queue-depth"), refused.header("x-ojs-queue-bound")), ("2", "2"));
    assert!(!refused.header("retry-after").is_empty());
    assert_eq!(server.stored_jobs().await, 2);
    let stats = server.get("/ojs/v1/queues/full/stats").await.expect(200).json();
    assert_eq!((&stats["stats"]["depth"], &stats["stats"]["max_depth"]), (&json!(2), &json!(2)));
    assert_eq!(fetched(server, &["full"], 1).await, 1);
    server.push(&job("full")).await;
    bound(server, "full", json!({"backpressure": null})).await;
    server.push(&job("full")).await;
}

async fn a_batch_that_does_not_fit_is_refused_whole(server: &OjsServer) {
    bound(server, "b", json!({"backpressure": {"max_depth": 2}})).await;
    let batch = json!({"jobs": [job("b"), job("elsewhere"), job("b"), job("b")]});
    server.post("/ojs/v1/jobs/batch", &batch).await.expect(429);
    assert_eq!(server.stored_jobs().await, 0);
}

async fn clients_receive_a_warning_when_a_queue_fills(server: &OjsServer) {
    bound(server, "w", json!({"backpressure": {"max_depth": 4, "warning_threshold": 0.5}})).await;
    let mut reported = Vec::new();
    for _ in 0..3 {
        let reply = server.post("/ojs/v1/jobs", &job("w")).await.expect(201);
        reported.push(reply.header("x-ojs-queue-pressure").to_owned());
    }
    assert_eq!(reported, ["", "2/4", "3/4"]);
}

async fn a_queue_keeps_to_its_rate_and_reports_the_remainder(server: &OjsServer) {
    let slow =
        json!({"type": "a.b", "args": [], "options": {"queue": "r", "rate_limit": {"max_per_second": 1}}});
    for _ in 0..2 {
        let reply = server.post("/ojs/v1/jobs", &slow).await.expect(201);
        assert_eq!((reply.header("x-ratelimit-limit"), reply.header("x-ratelimit-remaining")), ("1", "1"));
        assert!(reply.header("x-ratelimit-reset").parse::<i64>().is_ok());
    }
    assert_eq!(fetched(server, &["r"], 5).await, 1);
    assert_eq!(fetched(server, &["r"], 5).await, 0);
    let reply = server.post("/ojs/v1/jobs", &slow).await.expect(201);
    assert_eq!(reply.header("x-ratelimit-remaining"), "0");
    server.pass_ms(1_500).await;
    assert_eq!(fetched(server, &["r"], 5).await, 1);
}

fn keyed(key: &str) -> Value {
    json!({"type": "a.b", "args": [], "options": {"queue": "k", "rate_limit": {"key": key, "concurrency": 1}}})
}

async fn a_limit_is_listed_as_soon_as_a_job_names_it(server: &OjsServer) {
    server.get("/ojs/v1/rate-limits/api.example").await.expect(404);
    for key in ["api.example", "api.example", "other"] {
        server.push(&keyed(key)).await;
    }
    let limit = server.get("/ojs/v1/rate-limits/api.example").await.expect(200).json();
    assert_eq!(limit["concurrency"], json!({"limit": 1, "active": 0, "available": 1}));
    assert_eq!(fetched(server, &["k"], 5).await, 2, "one of each key");
    let limit = server.get("/ojs/v1/rate-limits/api.example").await.expect(200).json();
    assert_eq!(limit["concurrency"], json!({"limit": 1, "active": 1, "available": 0}));
    assert_eq!((&limit["key"], &limit["waiting_count"]), (&json!("api.example"), &json!(1)));
    let list = server.get("/ojs/v1/rate-limits").await.expect(200).json();
    assert_eq!(list["pagination"]["total"], 2);
}

async fn an_operator_overrides_a_limit(server: &OjsServer) {
    for _ in 0..4 {
        server.push(&keyed("a")).await;
    }
    assert_eq!(fetched(server, &["k"], 9).await, 1);
    let limit = server.put("/ojs/v1/rate-limits/a", &json!({"concurrency": 3})).await.expect(200).json();
    assert_eq!((&limit["concurrency"]["limit"], &limit["overridden"]), (&json!(3), &json!(true)));
    assert_eq!(fetched(server, &["k"], 9).await, 2);
    let limit = server.delete("/ojs/v1/rate-limits/a").await.expect(200).json();
    assert_eq!((&limit["concurrency"]["limit"], &limit["overridden"]), (&json!(1), &json!(false)));
    server.put("/ojs/v1/rate-limits/a", &json!({})).await.expect(400);
    server.put("/ojs/v1/rate-limits/a", &json!({"concurrency": -1})).await.expect(400);
    server.delete("/ojs/v1/rate-limits/unknown").await.expect(404);
}

async fn a_pool_is_returned_and_its_shares_are_counted(server: &OjsServer) {
    let sent = json!({"name": "p", "strategy": "weighted_fair", "queues": {"gold": {"weight": 3}, "free": {"weight": 1}}});
    let pool = server.put("/ojs/v1/admin/pools/p", &sent).await.expect(201).json();
    assert_eq!(pool["pool"], sent);
    assert_eq!(server.get("/ojs/v1/admin/pools/p").await.expect(200).json()["pool"], sent);
    assert_eq!(server.get("/ojs/v1/admin/pools").await.expect(200).json()["pools"], json!([sent]));
    server.get("/ojs/v1/admin/pools/q").await.expect(404);
    for queue in ["gold", "free"] {
        for _ in 0..8 {
            server.push(&job(queue)).await;
        }
    }
    assert_eq!(fetched(server, &["free", "gold"], 8).await, 8);
    let stats = server.get("/ojs/v1/admin/scheduling/stats").await.expect(200).json();
    assert_eq!(stats["stats"]["total_claims"], 8);
    let shares: Vec<(&Value, &Value, &Value)> = stats["queues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|q| (&q["queue"], &q["claims"], &q["share"]))
        .collect();
    assert_eq!(
        shares,
        [(&json!("free"), &json!(2), &json!(0.25)), (&json!("gold"), &json!(6), &json!(0.75))]
    );
    server.put("/ojs/v1/admin/pools/p", &json!({"strategy": "by-mood"})).await.expect(400);
    server.put("/ojs/v1/admin/pools/p", &sent).await.expect(200);
}

async fn a_policy_and_settings_are_independent(server: &OjsServer) {
    let policy = json!({"required": true, "allowed_algorithms": ["ed25519"]});
    let put = json!({"name": "sealed", "attest_policy": policy});
    server.put("/ojs/v1/queues/sealed", &put).await.expect(201);
    bound(server, "sealed", json!({"concurrency": 4})).await;
    let shown = server.get("/ojs/v1/admin/queues/sealed").await.expect(200).json();
    assert_eq!(shown["config"], json!({"attest_policy": policy, "concurrency": 4}));
    let put = json!({"attest_policy": null});
    let reply = server.put("/ojs/v1/queues/sealed", &put).await.expect(200).json();
    assert_eq!(reply["config"], json!({"concurrency": 4}));
    server.put("/ojs/v1/queues/sealed", &json!({"name": "another"})).await.expect(400);
    server.put("/ojs/v1/admin/queues/sealed/config", &json!({"concurrency": "many"})).await.expect(400);
}

async fn an_invalid_queue_name_is_refused(server: &OjsServer) {
    for name in ["Upper", "-a", "a%20b", "%C3%A4"] {
        server.get(&format!("/ojs/v1/queues/{name}/stats")).await.expect(400);
        server.send(Method::POST, &format!("/ojs/v1/queues/{name}/pause"), &[], "").await.expect(400);
        server.put(&format!("/ojs/v1/admin/queues/{name}/config"), &json!({})).await.expect(400);
    }
    assert_eq!(server.fleet.number("SELECT count(*) FROM queues WHERE created_at > 0").await, 0);
}
