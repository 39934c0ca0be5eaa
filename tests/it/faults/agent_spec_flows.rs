//! A flow of Agent Spec whose database goes away and comes back while it runs.

use super::load::client;
use super::site::Site;
use crate::agent_spec::{end, flow, part, property, start, then};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::insist::insist;

/// The iterations of the flow.
const ITEMS: usize = 12;
/// The crashes of the database.
const CRASHES: usize = 3;

/// A map with a model call for each item.
fn looking() -> Value {
    let text = |title: &str| property(title, "string");
    let list = |title: &str| json!({"title": title, "type": "array", "items": {"type": "string"}});
    let model = part("LlmConfig", "llm", json!({"model_id": "m", "api_provider": "test"}));
    let each = flow(
        "each",
        &[
            start("e-start", &[text("q")]),
            part("LlmNode", "e-look", json!({"llm_config": model, "prompt_template": "{{q}}"})),
            end("e-end", &[text("generated_text")]),
        ],
        &[then("e-start", "e-look"), then("e-look", "e-end")],
        &[],
    );
    let nodes = [
        start("start", &[list("iterated_q")]),
        part("MapNode", "map", json!({"subflow": each})),
        end("end", &[list("collected_generated_text")]),
    ];
    let mut document = flow("looking", &nodes, &[then("start", "map"), then("map", "end")], &[]);
    document["agentspec_version"] = "26.2.0".into();
    document
}

/// AGS-45: the flow continues at its node, no recorded answer is bought again, and the outputs are complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_flow_continues_after_its_database_was_away() {
    let site = Site::start(&[]).await;
    let fleet = site.fleet().await;
    let http = client();
    let (status, body) = insist(&http, Method::POST, &format!("{}/agents", fleet.api.url), &looking()).await;
    assert_eq!(status, 201, "{body:#}");
    let items: Vec<String> = (0..ITEMS).map(|item| item.to_string()).collect();
    let job = json!({"type": "flow.run", "args": [{"iterated_q": items}], "meta": {"agent": "looking"},
                     "options": {"retry": {"max_attempts": 100, "initial_interval": "PT0.1S"}}});
    let (status, body) = insist(&http, Method::POST, &format!("{}/ojs/v1/jobs", fleet.api.url), &job).await;
    assert_eq!(status, 201, "{body:#}");
    for crash in 1..=CRASHES {
        site.models.seen(crash * ITEMS / (CRASHES + 1)).await;
        site.postgres.stop_immediate().await;
        site.postgres.start_again().await;
    }
    site.until("the flow ends", "SELECT count(*) FROM jobs WHERE state = 'completed'", |done| done == 1)
        .await;
    let url = format!("{}/ojs/v1/jobs/{}", fleet.api.url, body["job"]["id"].as_str().unwrap());
    let (_, done) = insist(&http, Method::GET, &url, &Value::Null).await;
    let outputs = &done["job"]["result"]["outputs"]["collected_generated_text"];
    assert_eq!(*outputs, json!(vec!["done"; ITEMS]), "{done:#}");
    let calls = site.models.count();
    assert!((ITEMS..=ITEMS + CRASHES).contains(&calls), "{calls} model calls for {ITEMS} nodes");
    fleet.stop().await;
}
