//! INIT: ids in the manifest's format, trace context and baggage (RS-01 … RS-06).

use super::{bodies, desk, job};
use serde_json::{Value, json};
use std::collections::HashSet;
use turnstone_domain::JobState;
use turnstone_tests::{Fleet, Reply, model_server};

const IDS: &str = "  identity: {instance_id: {generation: uuid_v4, scope: pod}, interaction_id: {generation: ulid, scope: request}, session_id: {generation: ulid}}\n  tools: [{type: http, name: search}]\n";

fn twice(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        done @ 0..2 => Reply::call("search", json!({"n": done})),
        _ => Reply::text("done"),
    }
}

/// RS-01, RS-02, RS-03, RS-04, RS-06: formats, one interaction per turn, one session and one instance, turns without
/// a gap.
#[tokio::test]
async fn every_turn_has_an_interaction_of_its_own_in_one_session() {
    let fleet = desk(IDS, twice).await;
    let mut interactions = HashSet::new();
    let mut sessions = HashSet::new();
    for _ in 0..2 {
        let id = fleet.push(&job(&json!(["go"]))).await;
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        let turns = bodies(&fleet, &id, "init").await;
        assert_eq!(turns.iter().map(|t| t["turn_number"].as_i64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
        for turn in &turns {
            assert_eq!(turn["interaction_id"].as_str().unwrap().len(), 26, "a ULID: {turn:#}");
            assert!(interactions.insert(turn["interaction_id"].to_string()), "unique over all turns");
            assert_eq!(turn["instance_id"].as_str().unwrap().as_bytes()[14], b'4', "a UUID of version 4");
            assert!(turn["started_at"].is_i64() && turn["request_id"] == id.as_str());
        }
        let of = |key: &str| turns.iter().map(|turn| turn[key].to_string()).collect::<HashSet<_>>();
        assert_eq!((of("session_id").len(), of("instance_id").len()), (1, 1), "{turns:#?}");
        sessions.extend(of("session_id"));
    }
    assert_eq!(sessions.len(), 2);
    fleet.end().await;
}

/// RS-03, RS-05: the caller's session, trace context and baggage; a malformed value counts as absent.
#[tokio::test]
async fn the_callers_context_is_taken_over_when_it_is_well_formed() {
    let fleet = desk("", |_| Reply::text("done")).await;
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (traceparent, baggage, taken) in [
        (good, "ossa.session.id=s-1,ossa.tenant.id=t", true),
        ("00-zz-b7ad6b7169203331-01", "a=\"b\"", false),
    ] {
        let mut job = job(&json!(["go"]));
        job["meta"]["traceparent"] = traceparent.into();
        job["meta"]["baggage"] = baggage.into();
        let id = fleet.push(&job).await;
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        let init = bodies(&fleet, &id, "init").await.remove(0);
        if taken {
            assert_eq!(init["trace_context"]["traceparent"], good);
            assert_eq!(init["baggage"], json!({"ossa.session.id": "s-1", "ossa.tenant.id": "t"}));
            assert_eq!(init["session_id"], "s-1");
        } else {
            assert_eq!((&init["trace_context"], &init["baggage"]), (&Value::Null, &Value::Null));
            assert_eq!(init["session_id"], fleet.engagement_of(&id).await.as_str());
        }
    }
    fleet.end().await;
}

/// RS-04, RS-06, facts §6.2 case 4: a worker that takes over continues the same interaction as another instance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_keeps_the_interaction_and_changes_the_instance() {
    let fleet = Fleet::builder().workers(0).model(twice).start().await;
    super::register(&fleet, IDS).await;
    let id = fleet.push(&job(&json!(["go"]))).await;
    crate::crash::killed(crate::crash::spawn(&fleet, 1, Some("1:exec:before"))).await;
    fleet.release_all().await;
    let second = crate::crash::spawn(&fleet, 1, None);
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    drop(second);
    assert_eq!(done["state"], "completed");
    let (init, emit) = (bodies(&fleet, &id, "init").await, bodies(&fleet, &id, "emit").await);
    assert_eq!(init.len(), 3, "no turn was skipped or begun twice");
    assert_ne!(init[0]["instance_id"], emit[0]["instance_id"], "another worker ended the turn");
    assert_eq!(init[1]["instance_id"], emit[1]["instance_id"]);
    assert_eq!(fleet.tools.calls().len(), 2);
    fleet.end().await;
}
