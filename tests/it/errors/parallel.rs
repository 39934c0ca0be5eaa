//! Calls of one answer run in parallel when all of them allow it (RS-24).

use super::{attempts, desk, push, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Gate};
use turnstone_worker::tool::Toolbox;

const BOTH: &str = "  tools:\n    - {type: http, name: search, parallel: true}\n    - {type: http, name: web_search, config: {parallel: true}}\n";

/// RS-24, facts §6.2 case 10: two tools marked parallel overlap, and the model receives the outcomes in the order of
/// its calls.
#[tokio::test]
async fn parallel_tools_overlap_and_are_reported_in_request_order() {
    for backend in Backend::ALL {
        let fleet = desk(Fleet::builder().on(backend), BOTH, &["web_search", "search", "search"]).await;
        let gate = Gate::default();
        fleet.tools.hold(&gate);
        let id = push(&fleet).await;
        fleet.tools.seen(3).await;
        gate.open();
        let done = fleet.settled(&id).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        assert_eq!(fleet.tools.most_at_once(), 3);
        let messages = fleet.models.calls()[1].request["messages"].clone();
        let requested: Vec<&Value> = messages
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|message| message["tool_calls"].as_array())
            .flatten()
            .map(|call| &call["id"])
            .collect();
        let prompt: Vec<&Value> = messages
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| &message["tool_call_id"])
            .collect();
        assert_eq!((requested.len(), &prompt), (3, &requested));
        // One barrier for all intents, one for all outcomes: there is no write per call.
        let names: Vec<Value> =
            attempts(&fleet, &id).await.iter().map(|attempt| attempt["name"].clone()).collect();
        assert_eq!(names, [json!("web_search"), json!("search"), json!("search")]);
        fleet.end().await;
    }
}

/// RS-24: one tool that is not marked makes all calls of the answer sequential.
#[tokio::test]
async fn unmarked_tools_never_overlap() {
    let spec = "  tools:\n    - {type: http, name: search, parallel: true}\n    - {type: http, name: book}\n";
    let fleet = desk(Fleet::builder(), spec, &["search", "book", "search"]).await;
    let gate = Gate::default();
    fleet.tools.hold(&gate);
    let id = push(&fleet).await;
    fleet.tools.seen(1).await;
    gate.open();
    fleet.settled(&id).await;
    let order: Vec<String> = fleet.tools.calls().into_iter().map(|call| call.tool).collect();
    assert_eq!(
        (order, fleet.tools.most_at_once()),
        (vec!["search".into(), "book".into(), "search".into()], 1)
    );
    fleet.end().await;
}

/// A fleet whose model calls the `read_only` tool `search` twice.
async fn reading_twice(spec: &str) -> Fleet {
    let mut fleet = desk(Fleet::builder().workers(0), spec, &["search", "search"]).await;
    let config = json!({"description": "searches", "url": format!("{}/search", fleet.tools.url),
                        "read_only": true, "allow_private": true});
    let config = BTreeMap::from([("search".to_owned(), serde_json::from_value(config).unwrap())]);
    fleet.add_worker_with(1, |mut deps| {
        deps.toolbox = Toolbox::from_config(&config, Arc::clone(&deps.clock)).unwrap();
        deps
    });
    fleet
}

/// RS-24, issue 16: tools that the configuration declares read-only overlap without a setting of the manifest.
#[tokio::test]
async fn read_only_tools_overlap_unless_the_manifest_forbids_it() {
    let fleet = reading_twice("  tools: [{type: http, name: search}]").await;
    let gate = Gate::default();
    fleet.tools.hold(&gate);
    let id = push(&fleet).await;
    fleet.tools.seen(2).await;
    gate.open();
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    fleet.end().await;

    let fleet = reading_twice("  tools: [{type: http, name: search, parallel: false}]").await;
    let gate = Gate::default();
    fleet.tools.hold(&gate);
    let id = push(&fleet).await;
    fleet.tools.seen(1).await;
    gate.open();
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    assert_eq!((fleet.tools.calls().len(), fleet.tools.most_at_once()), (2, 1));
    fleet.end().await;
}

/// RS-24, RS-25: a failed call is retried, and the others keep their outcomes.
#[tokio::test]
async fn one_failure_repeats_only_its_own_call() {
    let spec = "  reliability: {retry: {initial_delay_ms: 1}}\n".to_owned() + BOTH;
    let fleet = desk(Fleet::builder(), &spec, &["search", "web_search"]).await;
    fleet.tools.fail("search", 2);
    let (id, done) = run(&fleet).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    assert_eq!((fleet.tools.calls_of("search"), fleet.tools.calls_of("web_search")), (3, 1));
    let attempts = attempts(&fleet, &id).await;
    assert_eq!((&attempts[0]["retries"], &attempts[1]["retries"]), (&json!(2), &json!(0)));
    fleet.end().await;
}

/// RS-24, design §4: a worker is killed during parallel calls. Idempotent ones are repeated with the same key, the
/// others are submitted for review, and the answer is not bought again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_amid_parallel_calls_repeats_nothing_blindly() {
    for backend in Backend::ALL {
        let spec = "  tools:\n    - {type: http, name: search, parallel: true}\n    - {type: http, name: book, parallel: true}\n";
        let fleet = desk(Fleet::builder().on(backend).workers(0), spec, &["search", "book", "search"]).await;
        let gate = Gate::default();
        fleet.tools.hold(&gate);
        let id = push(&fleet).await;
        let mut worker = crate::crash::spawn(&fleet, 2, None);
        fleet.tools.seen(3).await;
        worker.start_kill().unwrap();
        crate::crash::killed(worker).await;
        gate.open();
        fleet.release_all().await;
        let second = crate::crash::spawn(&fleet, 2, None);
        let parked = fleet.wait_for(&id, &[JobState::Pending, JobState::Completed]).await;
        assert_eq!(parked["state"], "pending", "{parked:#}");
        let review = super::open_review(&fleet).await;
        assert_eq!(review["kind"], "unknown_outcome");
        assert_eq!(fleet.tools.calls_of("book"), 1, "no blind retry");
        super::answer(&fleet, &review, "reject").await;
        let done = fleet.wait_for(&id, &super::ENDED).await;
        drop(second);
        assert_eq!(done["state"], "completed", "{done:#}");
        assert_eq!((fleet.tools.calls_of("book"), fleet.models.calls().len()), (1, 2));
        let keys: std::collections::HashSet<String> = fleet
            .tools
            .calls()
            .into_iter()
            .filter(|call| call.tool == "search")
            .map(|call| call.key)
            .collect();
        assert_eq!((keys.len(), fleet.tools.calls_of("search")), (2, 4), "each again with its own key");
        fleet.end().await;
    }
}
