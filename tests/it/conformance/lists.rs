//! Lists without journals, and how much of a tool journal is in memory at once.

use super::backend::Opened;
use super::jobs::{LEASE, NOW, complete, engagement, nothing, park};
use super::on_every_store;
use serde_json::{Value, json};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::tool_call::{ToolCallMove, ToolOutcome};
use turnstone_domain::{CallId, Ids, Lease, TurnWrite};
use turnstone_store::{JobFilter, Page};

on_every_store![
    a_parked_job_names_its_wait,
    lists_omit_the_journal_and_a_job_has_its_newest_part,
    a_journal_is_read_in_parts,
];

const EVERYTHING: Page = Page { limit: 100, offset: 0 };

async fn a_parked_job_names_its_wait(at: &Opened) {
    let (runs, parked) = (at.held(None).await, at.held(None).await);
    at.settle(&parked.lease, park(None)).await;
    let (jobs, _) = at.store.views.jobs(&JobFilter::default(), EVERYTHING).await.unwrap();
    let of = |id| jobs.iter().find(|job| job.id == id).unwrap().waits_for.clone();
    assert_eq!(of(runs.job.clone()), None);
    let waits = of(parked.job.clone()).unwrap();
    assert_eq!((&waits["reviewer"], waits["review_id"].is_string()), (&json!("ann"), true), "{waits}");
    assert_eq!(at.job(&parked.job).await.waits_for, Some(waits));
}

/// Settles so many calls with outputs of so many bytes; `n` of an output is its number.
async fn call(at: &Opened, lease: &Lease, calls: i64, bytes: usize) {
    for n in 0..calls {
        let call_id: CallId = SystemIds.next().into();
        let intend = ToolCallMove::Intend {
            call_id: call_id.clone(),
            turn: 1,
            position: n,
            name: "search".into(),
            input: json!({}),
            idempotent: true,
            sent: true,
        };
        let output = json!({"n": n, "text": "x".repeat(bytes)});
        let outcome = ToolOutcome::Success { output };
        let withheld = n == 1;
        let settle = ToolCallMove::Settle { call_id, outcome, handled: None, duration_ms: 1, withheld };
        for made in [intend, settle] {
            let write = TurnWrite { tool_calls: vec![made], ..nothing() };
            at.store.ledger.checkpoint(lease, write, NOW, LEASE).await.unwrap();
        }
    }
}

fn numbers(results: &[Value]) -> Vec<i64> {
    results.iter().filter_map(|result| result["result"]["n"].as_i64()).collect()
}

/// 60 outcomes of 100,000 bytes are more than one answer holds in memory.
async fn lists_omit_the_journal_and_a_job_has_its_newest_part(at: &Opened) {
    let (few, many) = (at.held(None).await, at.held(None).await);
    call(at, &few.lease, 3, 10).await;
    call(at, &many.lease, 60, 100_000).await;
    let (jobs, _) = at.store.views.jobs(&JobFilter::default(), EVERYTHING).await.unwrap();
    assert!(jobs.iter().all(|job| job.agent.as_ref().unwrap().tool_results.is_none()));
    let shown = async |id| at.job(id).await.agent.unwrap().tool_results.unwrap();
    let all = shown(&few.job).await;
    assert_eq!((numbers(&all.newest), all.whole), (vec![0, 2], true), "1 is withheld");
    assert_eq!(all.newest.len(), 3);
    let newest = shown(&many.job).await;
    assert_eq!((numbers(&newest.newest), newest.whole), ((10..60).collect(), false));
    at.settle(&few.lease, complete()).await;
}

async fn a_journal_is_read_in_parts(at: &Opened) {
    let held = at.held(None).await;
    call(at, &held.lease, 5, 10).await;
    let (views, id) = (&at.store.views, engagement(&held));
    let whole = views.tool_calls(&id).await.unwrap();
    assert_eq!(whole.iter().map(|call| call.position).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let part = views.tool_calls_page(&id, Page { limit: 2, offset: 3 }).await.unwrap();
    assert_eq!(part, whole[3..]);
    let withheld = views.withheld_calls(&id).await.unwrap();
    assert_eq!(withheld, [whole[1].call_id.clone()]);
}
