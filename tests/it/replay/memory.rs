//! Recalled messages are recorded with their engagement: forks, exports and replays read no other engagement.

use super::{exported, fork_ran, imported, runs_again, said as spoken};
use crate::policy::memory::{fleet, parrot, retaining, said, texts_sent};
use crate::stores::on_stores;
use serde_json::json;
use turnstone_domain::Timestamp;
use turnstone_domain::record::EngagementRecord;
use turnstone_store::Duty;
use turnstone_tests::{Backend, Fleet};
use turnstone_worker::rerun;

const KEPT: &str = "lifespan: {retain_memory: true}";

/// OAS-51: a fork of the first turn begins with its origin's recalled messages, although later engagements ended
/// since. The text of a fork or a branch is not recalled.
async fn a_fork_begins_with_its_origins_memory(backend: Backend) {
    let fleet = fleet(backend).await;
    fleet.register(retaining("kept", KEPT)).await;
    said(&fleet, "kept", "first").await;
    let second = said(&fleet, "kept", "second").await;
    said(&fleet, "kept", "third").await;
    for phase in ["init", "resol", "infer"] {
        let (fork, job) = fork_ran(&fleet, &second, json!({"at_turn": 1, "phase": phase})).await;
        assert_eq!(job["state"], "completed", "{job:#}");
        assert_eq!(texts_sent(&fleet, "second"), ["first", "answer to first", "second"], "{phase}");
        assert_eq!(spoken(&fleet, &fork).await, spoken(&fleet, &second).await, "{phase}");
        assert_eq!(runs_again(&exported(&fleet, &fork).await).await, (1, 7));
    }
    let job = fleet.get(&format!("/engagements/{second}")).await["job_id"].as_str().unwrap().to_owned();
    let (status, branch) = fleet.post(&format!("/ojs/v1/agents/{job}/fork"), &json!({"at_turn": 1})).await;
    assert!(status.is_success(), "{status}: {branch:#}");
    let open = "SELECT count(*) FROM jobs WHERE ended_at IS NULL";
    fleet.until("the branch has ended", async || fleet.number(open).await == 0).await;
    assert_eq!(texts_sent(&fleet, "second"), ["first", "answer to first", "second"]);
    said(&fleet, "kept", "fourth").await;
    let all =
        ["first", "answer to first", "second", "answer to second", "third", "answer to third", "fourth"];
    assert_eq!(texts_sent(&fleet, "fourth"), all);
    fleet.end().await;
}

/// OAS-51: recalled messages move with the engagement, are replayed, and are marked. Imported engagements are not
/// recalled, and pruning them here removes them from no other engagement.
async fn it_moves_with_the_engagement(backend: Backend) {
    let from = fleet(backend).await;
    from.register(retaining("kept", KEPT)).await;
    said(&from, "kept", "first").await;
    from.clock.advance_ms(10_000_000);
    let begun = from.now();
    let second = said(&from, "kept", "second").await;
    let (document, recalled) = (exported(&from, &second).await, spoken(&from, &second).await);
    assert_eq!(recalled.len(), 4);
    runs_the_same(&from, &second).await;
    another_memory_is_a_difference(&document).await;

    // To the other store, or, without PostgreSQL, to a second one of the same kind.
    let other = Backend::ALL.into_iter().find(|other| *other != backend).unwrap_or(backend);
    let to = moved(other, &document).await;
    assert_eq!(spoken(&to, &second).await, recalled);
    runs_the_same(&to, &second).await;
    to.end().await;

    forget(&from, begun).await;
    assert_eq!(spoken(&from, &second).await, recalled);
    assert_eq!(exported(&from, &second).await.lines().count(), document.lines().count());
    said(&from, "kept", "third").await;
    assert_eq!(texts_sent(&from, "third"), ["second", "answer to second", "third"]);
    from.end().await;
}

async fn runs_the_same(fleet: &Fleet, engagement: &str) {
    assert_eq!(runs_again(&exported(fleet, engagement).await).await, (1, 7));
}

/// Starts another server with the imported engagement, and checks that it does not recall it.
async fn moved(backend: Backend, document: &str) -> Fleet {
    let to = Fleet::builder().on(backend).model(parrot).start().await;
    to.register(retaining("kept", KEPT)).await;
    assert_eq!(imported(&to, document).await.0, 201);
    said(&to, "kept", "here").await;
    assert_eq!(texts_sent(&to, "here"), ["here"]);
    to
}

async fn another_memory_is_a_difference(document: &str) {
    let mut record = EngagementRecord::read(document).unwrap();
    record.messages[1].message.recalled_from = Some("another".into());
    let differs = rerun(&record).await.unwrap().difference.unwrap();
    assert_eq!((differs.turn, differs.what.as_str()), (0, "message 1 of the turn"));
}

/// Deletes the engagements that ended before this.
async fn forget(from: &Fleet, begun: Timestamp) {
    let store = &from.store;
    let term = store.upkeep.lead("test", 60_000, begun.plus_ms(100_000_000)).await.unwrap().unwrap();
    for duty in [Duty::FoldStatistics { until: from.now() }, Duty::Prune { before: begun.plus_ms(-1) }] {
        store.upkeep.perform(duty, &term, from.now(), 100).await.unwrap();
    }
    assert_eq!(from.number("SELECT count(*) FROM engagements").await, 1, "the first one is gone");
    assert_eq!(from.number("SELECT count(*) FROM memories").await, 1);
}

on_stores!(
    everywhere: [],
    sqlite_first: [a_fork_begins_with_its_origins_memory, it_moves_with_the_engagement],
);
