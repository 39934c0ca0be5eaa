//! Runs of the Agent Protocol: each number has one writer, and numbers are deleted with the run (`docs/adr/0006`).

use super::backend::Opened;
use super::jobs::{NOW, complete, engagement};
use super::on_every_store;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use turnstone_domain::{EngagementId, JobId};
use turnstone_store::{Configured, Duty, News, Page};

on_every_store![
    a_page_ends_when_its_events_are_long,
    the_positions_of_streams_are_read_in_one_call,
    numbers_have_no_gaps_and_are_given_once,
    concurrent_writers_of_a_run_are_numbered_one_after_another,
    a_poll_advances_once,
    settings_change_at_the_version_that_was_read,
    events_are_deleted_with_their_run,
];

/// Starts a run and claims its request.
async fn begun(at: &Opened) -> (EngagementId, JobId) {
    let held = at.held(None).await;
    (engagement(&held), held.job.clone())
}

fn news(request: &JobId, said: &[&str]) -> News {
    News {
        events: said.iter().map(|said| (request.clone(), json!({"said": said}).to_string())).collect(),
        requests: Vec::new(),
        marks: json!({"to": said.len()}).to_string(),
    }
}

async fn numbered_events(at: &Opened, run: &EngagementId) -> Vec<(i64, String)> {
    let events = at.store.runs.run_events(run, 0, None, 1000).await.unwrap();
    assert!(!events.more);
    events.events.into_iter().map(|event| (event.id, event.body)).collect()
}

async fn numbers_have_no_gaps_and_are_given_once(at: &Opened) {
    let (run, request) = begun(at).await;
    let runs = &at.store.runs;
    assert!(numbered_events(at, &run).await.is_empty());
    let first = News { requests: vec![(request.clone(), 1, None)], ..news(&request, &["a", "b"]) };
    assert!(runs.advance(&run, 0, first).await.unwrap());
    assert!(!runs.advance(&run, 0, news(&request, &["x"])).await.unwrap(), "a concurrent writer was first");
    assert!(!runs.advance(&run, 1, news(&request, &["x"])).await.unwrap());
    let end = News { requests: vec![(request.clone(), 0, Some(3))], ..news(&request, &["c"]) };
    assert!(runs.advance(&run, 2, end).await.unwrap());
    let said = |said: &str| json!({"said": said}).to_string();
    assert_eq!(numbered_events(at, &run).await, [(1, said("a")), (2, said("b")), (3, said("c"))]);
    assert_eq!(runs.position(&run).await.unwrap().last, 3);
    let listed = runs.run_requests(&run).await.unwrap();
    assert_eq!((listed[0].began, listed[0].ended), (1, Some(3)), "its beginning stays");
    let own = runs.run_events(&run, 1, Some(&request), 1).await.unwrap();
    assert_eq!((own.events.iter().map(|event| event.id).collect::<Vec<_>>(), own.more), (vec![2], true));
    assert_eq!(own.events[0].request.as_ref(), Some(&request));
    let other = runs.run_events(&run, 0, Some(&JobId("none".into())), 10).await.unwrap();
    assert!(other.events.is_empty() && !other.more);
}

/// Issue 7, "slow readers": a page is bounded in bytes and has at least one event.
async fn a_page_ends_when_its_events_are_long(at: &Opened) {
    let (run, request) = begun(at).await;
    let runs = &at.store.runs;
    let long = "x".repeat(600 * 1024);
    assert!(runs.advance(&run, 0, news(&request, &[long.as_str(); 5])).await.unwrap());
    let mut read = Vec::new();
    loop {
        let page = runs.run_events(&run, i64::try_from(read.len()).unwrap(), None, 200).await.unwrap();
        assert!((1..=2).contains(&page.events.len()), "{}", page.events.len());
        read.extend(page.events.iter().map(|event| event.id));
        if !page.more {
            break;
        }
    }
    assert_eq!(read, [1, 2, 3, 4, 5]);
}

/// One call returns the positions of many streams. Unknown streams are left out.
async fn the_positions_of_streams_are_read_in_one_call(at: &Opened) {
    let (run, request) = begun(at).await;
    let (other, _) = begun(at).await;
    let wanted = vec![run.0.clone(), "none".to_owned(), other.0.clone(), request.0.clone()];
    let mut newest = at.store.views.newest_events(wanted).await.unwrap();
    newest.sort();
    let mut named = [run.0.clone(), other.0.clone()];
    named.sort();
    assert_eq!(newest.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), named);
    let filter = turnstone_store::EventFilter::Engagement(run.clone());
    let events = at.store.views.events_after(&filter, 0, 1000).await.unwrap();
    let found = newest.iter().find(|(name, _)| *name == run.0).unwrap();
    assert_eq!(found.1, events.last().unwrap().seq);
}

async fn concurrent_writers_of_a_run_are_numbered_one_after_another(at: &Opened) {
    let (run, request) = begun(at).await;
    let runs = &at.store.runs;
    let one = async |name: String| {
        loop {
            let last = runs.position(&run).await.unwrap().last;
            if runs.advance(&run, last, news(&request, &[&name, &name])).await.unwrap() {
                return;
            }
        }
    };
    futures::future::join_all((0..8).map(|n| one(n.to_string()))).await;
    let all = numbered_events(at, &run).await;
    assert_eq!(all.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (1..=16).collect::<Vec<_>>());
    let pairs: BTreeSet<&String> = all.iter().map(|(_, body)| body).collect();
    assert_eq!(pairs.len(), 8, "the events of all writers are there");
    assert!(all.chunks(2).all(|pair| pair[0].1 == pair[1].1), "the events of one write stay together");
}

async fn a_poll_advances_once(at: &Opened) {
    let (run, request) = begun(at).await;
    let runs = &at.store.runs;
    let first = News { requests: vec![(request.clone(), 1, None)], ..news(&request, &["a", "b"]) };
    runs.advance(&run, 0, first).await.unwrap();
    assert!(runs.polled(&request, 0, 2).await.unwrap());
    assert!(!runs.polled(&request, 0, 1).await.unwrap(), "a concurrent poll was first");
    assert_eq!(runs.run_requests(&run).await.unwrap()[0].seen, 2);
}

async fn settings_change_at_the_version_that_was_read(at: &Opened) {
    let runs = &at.store.runs;
    let of = |tenant: Option<&str>, run: Option<&str>| Configured {
        agent: "lead".into(),
        tenant: tenant.map(str::to_owned),
        run: run.map(EngagementId::from),
    };
    let args = |n: i64| Map::from_iter([("max_tokens".to_owned(), Value::from(n))]);
    let all = of(None, None);
    assert!(runs.configure(&all, 0, args(1)).await.unwrap());
    assert!(!runs.configure(&all, 0, args(2)).await.unwrap());
    assert!(runs.configure(&all, 1, args(3)).await.unwrap());
    let settings = runs.settings(&all).await.unwrap();
    assert_eq!((settings.version, settings.args), (2, args(3)));
    for other in [of(Some("acme"), None), of(None, Some("run"))] {
        assert_eq!(runs.settings(&other).await.unwrap().version, 0, "{other:?}");
    }
}

async fn events_are_deleted_with_their_run(at: &Opened) {
    let held = at.held(None).await;
    let (run, request) = (engagement(&held), held.job.clone());
    let runs = &at.store.runs;
    let first = News { requests: vec![(request.clone(), 1, None)], ..news(&request, &["a"]) };
    runs.advance(&run, 0, first).await.unwrap();
    let of = Configured { agent: "lead".into(), tenant: None, run: Some(run.clone()) };
    runs.configure(&of, 0, Map::new()).await.unwrap();
    at.settle(&held.lease, complete()).await;
    let later = NOW.plus_ms(1_000_000);
    while at.perform(Duty::FoldStatistics { until: later }, later).await > 0 {}
    assert_eq!(numbered_events(at, &run).await.len(), 1);
    assert_eq!(at.perform(Duty::Prune { before: later }, later).await, 1);
    assert!(numbered_events(at, &run).await.is_empty());
    for table in ["runs", "run_events", "run_requests", "run_settings"] {
        assert_eq!(at.query(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    assert!(runs.runs_of("lead", None, Page { limit: 10, offset: 0 }, None).await.unwrap().is_empty());
}
