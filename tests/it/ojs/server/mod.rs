//! The server's manifest, health, metrics and traces.

use super::on_sqlite_first;
use serde_json::json;
use turnstone_tests::OjsServer;

on_sqlite_first![
    the_manifest_names_the_protocols,
    health_and_readiness_are_answered_at_both_places,
    metrics_are_plain_text_and_count_jobs,
    traces_of_a_client_stay_in_meta,
];

async fn the_manifest_names_the_protocols(server: &OjsServer) {
    let manifest = server.get("/ojs/manifest").await.expect(200).json();
    for (field, value) in
        [("specversion", json!("1.0")), ("ojs_version", json!("1.0")), ("conformance_level", json!(4))]
    {
        assert_eq!(manifest[field], value, "{field}");
    }
    assert_eq!(manifest["implementation"]["name"], "turnstone");
    assert_eq!(manifest["protocols"], json!(["http"]));
    assert_eq!(manifest["capabilities"]["cron"], true);
    for kind in ["official", "experimental"] {
        for extension in manifest["extensions"][kind].as_array().unwrap() {
            assert!(extension["uri"].as_str().unwrap().ends_with(extension["name"].as_str().unwrap()));
        }
    }
}

async fn health_and_readiness_are_answered_at_both_places(server: &OjsServer) {
    for path in ["/health", "/ojs/v1/health"] {
        let reply =
            server.send(reqwest::Method::GET, path, &[("x-request-id", "mine")], "").await.expect(200);
        assert_eq!(reply.header("content-type"), "application/openjobspec+json");
        assert_eq!((reply.header("x-request-id"), reply.header("ojs-version")), ("mine", "1.0"));
        let health = reply.json();
        assert_eq!(
            (&health["status"], &health["backend"]["status"]),
            (&json!("ok"), &json!("ok")),
            "{health:#}"
        );
        assert!(health["backend"]["latency_ms"].is_u64() && health["uptime_seconds"].is_i64());
    }
    for path in ["/ready", "/readyz"] {
        assert_eq!(server.get(path).await.expect(200).json()["status"], "ok");
    }
}

async fn metrics_are_plain_text_and_count_jobs(server: &OjsServer) {
    server.push(&json!({"type": "a.b", "args": [], "queue": "counted"})).await;
    server.get("/nothing/here").await.expect(404);
    let reply = server.get("/metrics").await.expect(200);
    assert_eq!(reply.header("content-type"), "text/plain");
    for line in [
        r#"turnstone_http_requests_total{method="POST",route="/ojs/v1/jobs",status="201"} 1"#,
        r#"turnstone_http_requests_total{method="any",route="unknown",status="404"} 1"#,
        r#"turnstone_http_request_duration_seconds_count{method="POST",route="/ojs/v1/jobs"} 1"#,
        r#"turnstone_jobs{state="available"} 1"#,
        r#"turnstone_jobs{state="completed"} 0"#,
        r#"turnstone_queue_jobs{queue="counted",state="available"} 1"#,
        r#"turnstone_queue_oldest_seconds{queue="counted"} 0"#,
        r#"turnstone_reviews_open 0"#,
        r#"turnstone_workers{alive="true"} 0"#,
    ] {
        assert!(reply.text.lines().any(|found| found == line), "{line} is not in\n{}", reply.text);
    }
    server.push(&json!({"type": "a.b", "args": [], "queue": "counted"})).await;
    let old = server.get("/metrics").await.expect(200).text;
    assert!(
        old.contains(r#"turnstone_queue_jobs{queue="counted",state="available"} 1"#),
        "it is polled seldom"
    );
    server.fleet.clock.advance_ms(5_000);
    let fresh = server.get("/metrics").await.expect(200).text;
    assert!(fresh.contains(r#"turnstone_queue_jobs{queue="counted",state="available"} 2"#));
    assert!(fresh.contains(r#"turnstone_queue_oldest_seconds{queue="counted"} 5"#), "{fresh}");
}

async fn traces_of_a_client_stay_in_meta(server: &OjsServer) {
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let meta =
        json!({"traceparent": trace, "ojs.federation.region": {"name": "eu"}, "ojs.codec.key_id": "k"});
    let id = server.push(&json!({"type": "a.b", "args": [], "meta": meta})).await;
    assert_eq!(server.job(&id).await["meta"], meta);
}
