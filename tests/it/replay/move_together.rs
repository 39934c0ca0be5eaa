//! Engagements that share a past move to another server, in any order: the shared rows have an id of their own in
//! each.

use super::{calls, exported, fork_ran, imported, job, ran, runs_again, said, trip};
use crate::stores::on_stores;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use turnstone_tests::{Backend, Fleet};

on_stores!(
    everywhere: [an_engagement_and_its_forks_move_in_any_order],
    sqlite_first: [],
);

fn ids(calls: &[Value]) -> Vec<&str> {
    calls.iter().map(|call| call["call_id"].as_str().unwrap()).collect()
}

#[expect(clippy::cognitive_complexity, reason = "one story: what is moved needs what was run before it")]
async fn an_engagement_and_its_forks_move_in_any_order(backend: Backend) {
    let from = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&from, &job("go")).await;
    let (first, _) = fork_ran(&from, &engagement, json!({"at_turn": 2, "phase": "exec"})).await;
    let (second, _) = fork_ran(&from, &engagement, json!({"at_turn": 4, "phase": "infer"})).await;
    let (third, _) = fork_ran(&from, &first, json!({"at_turn": 3, "phase": "persist"})).await;
    let mut all = Vec::new();
    for id in [&engagement, &first, &second, &third] {
        let document = exported(&from, id).await;
        assert_eq!(runs_again(&document).await, (4, 28));
        all.push((id.clone(), document));
    }
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let to = Fleet::builder().on(backend).workers(0).start().await;
        for at in order {
            let (status, answer) = imported(&to, &all[at].1).await;
            assert_eq!(status, 201, "{order:?}: {at}: {answer:#}");
            assert_eq!(imported(&to, &all[at].1).await.0, 409, "it is here once");
        }
        let (mut seen, mut count) = (BTreeSet::new(), 0);
        for (id, _) in &all {
            assert_eq!(said(&to, id).await, said(&from, id).await);
            assert_eq!(runs_again(&exported(&to, id).await).await, (4, 28), "{order:?}");
            let journal = calls(&to, id).await;
            count += journal.len();
            seen.extend(ids(&journal).into_iter().map(str::to_owned));
        }
        assert_eq!((seen.len(), count), (12, 12), "an id names one call");
        let (here, there) = (calls(&to, &engagement).await, calls(&from, &engagement).await);
        assert_eq!(ids(&here), ids(&there), "an engagement that is no fork keeps its ids");
        to.end().await;
    }
    from.end().await;
}
