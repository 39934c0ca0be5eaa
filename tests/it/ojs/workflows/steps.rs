//! The order of steps, for a worker over HTTP.

use super::super::on_sqlite_first;
use super::{ack, fail, fetched, job, made, one, shown};
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_chain_passes_its_results_on,
    a_chain_stops_at_a_failure,
    a_batch_calls_back_by_its_outcome,
    a_graph_waits_for_named_steps,
    a_delayed_step_waits_from_its_turn_on,
    an_expired_step_ends_the_chain,
    the_feed_of_a_workflow_is_in_order,
];

async fn a_chain_passes_its_results_on(server: &OjsServer) {
    let id = made(server, &json!({"type": "chain", "steps": [job("a"), job("b"), job("c")]})).await;
    let first = one(server).await;
    assert_eq!(
        (&first["type"], &first["workflow_id"], first.get("parent_results")),
        (&json!("a"), &json!(id), None)
    );
    ack(server, &first, json!({"n": 1})).await;
    let second = one(server).await;
    assert_eq!((&second["type"], &second["parent_results"]), (&json!("b"), &json!([{"n": 1}])));
    assert_eq!(server.job(second["id"].as_str().unwrap()).await["parent_results"], json!([{"n": 1}]));
    ack(server, &second, json!("two")).await;
    let third = one(server).await;
    assert_eq!(third["parent_results"][0], "two", "the immediate predecessor first");
    assert_eq!(shown(server, &id).await["steps_completed"], 2);
    ack(server, &third, Value::Null).await;
    let workflow = shown(server, &id).await;
    assert_eq!((&workflow["state"], &workflow["steps_completed"]), (&json!("completed"), &json!(3)));
}

async fn a_chain_stops_at_a_failure(server: &OjsServer) {
    let id = made(server, &json!({"type": "chain", "steps": [job("a"), job("b"), job("c")]})).await;
    ack(server, &one(server).await, Value::Null).await;
    fail(server, &one(server).await).await;
    assert!(fetched(server).await.is_empty());
    let workflow = shown(server, &id).await;
    assert_eq!((&workflow["state"], &workflow["steps_completed"]), (&json!("failed"), &json!(1)));
    assert_eq!(workflow["steps"][2]["state"], "skipped");
}

async fn a_batch_calls_back_by_its_outcome(server: &OjsServer) {
    let callbacks = json!({"on_complete": job("all"), "on_success": job("good"), "on_failure": job("bad")});
    for (fails, called) in [(false, "good"), (true, "bad")] {
        let body = json!({"type": "batch", "jobs": [job("a"), job("b")], "callbacks": callbacks});
        let id = made(server, &body).await;
        let jobs = fetched(server).await;
        ack(server, &jobs[0], json!(1)).await;
        if fails {
            fail(server, &jobs[1]).await
        } else {
            ack(server, &jobs[1], json!(2)).await
        }
        let called_back = fetched(server).await;
        let types: Vec<&str> = called_back.iter().map(|job| job["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["all", called]);
        assert_eq!(called_back[0]["parent_results"], if fails { json!([1, null]) } else { json!([1, 2]) });
        for job in &called_back {
            ack(server, job, Value::Null).await;
        }
        assert!(fetched(server).await.is_empty());
        let state = if fails { "failed" } else { "completed" };
        assert_eq!(shown(server, &id).await["state"], state);
    }
}

async fn a_graph_waits_for_named_steps(server: &OjsServer) {
    let step = |name: &str, needs: &[&str]| {
        let mut step = job(name);
        (step["id"], step["depends_on"]) = (name.into(), json!(needs));
        step
    };
    let steps = [
        step("last", &["left", "right"]),
        step("first", &[]),
        step("left", &["first"]),
        step("right", &["first"]),
    ];
    let id = made(server, &json!({"steps": steps})).await;
    ack(server, &one(server).await, json!("f")).await;
    let both = fetched(server).await;
    assert_eq!(both.len(), 2);
    for job in both.iter().rev() {
        assert_eq!(job["parent_results"], json!(["f"]));
        ack(server, job, job["type"].clone()).await;
    }
    let last = one(server).await;
    assert_eq!(last["parent_results"], json!(["left", "right"]), "in the order of depends_on");
    ack(server, &last, Value::Null).await;
    let workflow = shown(server, &id).await;
    assert_eq!((&workflow["state"], &workflow["type"]), (&json!("completed"), &json!("graph")));
    assert_eq!(workflow["steps"][0]["depends_on"], json!(["left", "right"]));
}

async fn a_delayed_step_waits_from_its_turn_on(server: &OjsServer) {
    let mut late = job("b");
    late["options"]["delay_until"] = "+PT5S".into();
    made(server, &json!({"type": "chain", "steps": [job("a"), late]})).await;
    let first = one(server).await;
    server.pass_ms(10_000).await;
    ack(server, &first, Value::Null).await;
    server.pass_ms(4_999).await;
    assert!(fetched(server).await.is_empty(), "it counts from its enqueueing");
    server.pass_ms(1).await;
    assert_eq!(one(server).await["type"], "b");
}

async fn an_expired_step_ends_the_chain(server: &OjsServer) {
    let mut short = job("a");
    short["options"]["expires_at"] = "+PT2S".into();
    let id = made(server, &json!({"type": "chain", "steps": [short, job("b")]})).await;
    server.pass_ms(2_001).await;
    assert!(fetched(server).await.is_empty());
    assert_eq!(shown(server, &id).await["state"], "failed");
}

async fn the_feed_of_a_workflow_is_in_order(server: &OjsServer) {
    made(server, &json!({"type": "chain", "steps": [job("a"), job("b")]})).await;
    ack(server, &one(server).await, Value::Null).await;
    ack(server, &one(server).await, Value::Null).await;
    let count = async |name: &str| {
        let of_workflows = "JOIN workflows AS w ON w.seq = journal.stream";
        let sql = format!("{} {of_workflows}", turnstone_tests::journal::event_count(name));
        server.fleet.number(&sql).await
    };
    assert_eq!(count("workflow.started").await, 1);
    assert_eq!(count("workflow.step_completed").await, 2);
    assert_eq!(count("workflow.completed").await, 1);
}
