//! Engagements of many turns: the cost of a turn does not grow with the turns before it (design §4, issue 5,
//! "Shown"). `turnstone bench history` and `cargo bench -p turnstone-benches --bench fleet -- long` measure the time.

mod watched;

use crate::inputs::register;
use futures::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Gate, Reply, model_server};
use watched::{Tally, Watched};

/// The turns of the engagement. The last one answers.
const TURNS: usize = 260;
/// In these turns the worker stops and another one takes over. Before the first of them there are more messages than
/// a worker recalls.
const BREAKS: [usize; 2] = [130, 240];
/// The turn from which the window is full.
const FULL: i64 = 40;

/// Calls the same tool in every turn, with arguments of one length, and holds the answers of the turns in [`BREAKS`].
fn script(gates: [Gate; 2]) -> impl Fn(&Value) -> Reply + Send + Sync {
    // The request has the window only, so the newest arguments contain the turn.
    move |request| {
        let turn = newest(request) + 1;
        if turn == TURNS {
            return Reply::text("done");
        }
        let reply = Reply::call("search", json!({"turn": format!("{turn:04}"), "words": "x".repeat(200)}));
        match BREAKS.iter().position(|at| *at == turn) {
            Some(at) => reply.behind(&gates[at]),
            None => reply,
        }
    }
}

/// Returns the turn of the newest call in a request, or 0 without one.
fn newest(request: &Value) -> usize {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let calls =
        messages.iter().rev().find_map(|message| message["tool_calls"][0]["function"]["arguments"].as_str());
    let arguments: Value = calls.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    arguments["turn"].as_str().and_then(|turn| turn.parse().ok()).unwrap_or_default()
}

fn watch(fleet: &mut Fleet, tally: &Arc<Mutex<Tally>>) {
    fleet.add_worker_with(1, |mut deps| {
        deps.ledger = Arc::new(Watched::new(Arc::clone(&deps.ledger), tally));
        deps
    });
}

/// Returns the rows and bytes in the database, by turn.
async fn stored(fleet: &Fleet) -> BTreeMap<i64, (i64, i64)> {
    let of = |table: &str, text: &str| {
        format!("SELECT turn, CAST(length({text}) AS BIGINT) AS bytes FROM {table}")
    };
    let all = [
        of("journal", "coalesce(body, '') || coalesce(said, '')"),
        of("tool_calls", "input || coalesce(outcome, '')"),
    ]
    .join(" UNION ALL ");
    let sql = format!(
        "SELECT turn, count(*), CAST(sum(bytes) AS BIGINT) FROM ({all}) AS everything GROUP BY turn ORDER BY turn"
    );
    let rows: Vec<(i64, i64, i64)> = fleet.place.rows(&sql).await;
    rows.into_iter().map(|(turn, rows, bytes)| (turn, (rows, bytes))).collect()
}

/// Returns true when two sizes differ by at most a fiftieth: the digits of durations, turns and sums.
fn alike(one: usize, other: usize) -> bool {
    one.abs_diff(other) * 50 <= one.max(other)
}

/// Design §4: "Turn 1,000 costs what turn 10 costs": a turn writes its new rows, reads nothing, and sends the model a
/// window. A worker that takes the engagement over reads as much late as early.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_turn_writes_and_reads_as_much_as_an_early_one() {
    join_all(Backend::ALL.map(live_long)).await;
}

async fn live_long(backend: Backend) {
    let gates: [Gate; 2] = Default::default();
    let mut fleet = Fleet::builder().on(backend).workers(0).model(script(gates.clone())).start().await;
    register(
        &fleet,
        "  tools: [{type: http, name: search}]\n  constraints: {max_turns: 1000}\n  turn_chain: {max_tool_turns: 1000}",
    )
    .await;
    let tally = Arc::default();
    watch(&mut fleet, &tally);
    let job = json!({"type": "agent.desk", "args": ["go"], "ext_agent_model": "m", "meta": {"agent": "desk"},
                     "ext_agent_token_budget": 10_000_000});
    let id = fleet.push(&job).await;
    for (at, gate) in gates.iter().enumerate() {
        // The call of this turn hangs; the worker that takes over makes a second one.
        fleet.models.seen(BREAKS[at] + at).await;
        fleet.stop_workers().await;
        watch(&mut fleet, &tally);
        fleet.models.seen(BREAKS[at] + at + 1).await;
        gate.open();
    }
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded, JobState::Retryable]).await;
    assert_eq!(done["state"], "completed", "on {backend:?}: {done:#}");
    written(backend, &tally.lock().unwrap());
    shown(backend, &fleet);
    let stored = stored(&fleet).await;
    let full = stored[&FULL];
    for (turn, (rows, bytes)) in stored.range(FULL..i64::try_from(TURNS).unwrap()) {
        if BREAKS.iter().any(|at| i64::try_from(*at).unwrap() == *turn) {
            continue;
        }
        assert_eq!(*rows, full.0, "rows of turn {turn} on {backend:?}");
        assert!(
            alike(usize::try_from(*bytes).unwrap(), usize::try_from(full.1).unwrap()),
            "turn {FULL} left {} bytes and turn {turn} {bytes} on {backend:?}",
            full.1
        );
    }
    fleet.end().await;
}

fn written(backend: Backend, tally: &Tally) {
    let early = tally.written[&FULL];
    for (turn, late) in tally.written.range(FULL..i64::try_from(TURNS).unwrap()) {
        if BREAKS.iter().any(|at| i64::try_from(*at).unwrap() == *turn) {
            continue;
        }
        assert_eq!((late.calls, late.rows), (early.calls, early.rows), "turn {turn} on {backend:?}");
        assert!(alike(late.bytes, early.bytes), "turn {turn} on {backend:?}: {late:?} and {early:?}");
    }
    assert_eq!(tally.claims.len(), 3, "{:?}", tally.claims);
    assert!(alike(tally.claims[1], tally.claims[2]), "claims on {backend:?}: {:?}", tally.claims);
    assert_eq!(tally.recalls.len(), 2, "each takeover recalls once, and a turn never");
    assert!(alike(tally.recalls[0], tally.recalls[1]), "recalls on {backend:?}: {:?}", tally.recalls);
    assert_eq!(tally.reads, 0);
}

/// The model receives a window of the conversation, and never more.
fn shown(backend: Backend, fleet: &Fleet) {
    let calls = fleet.models.calls();
    let sizes: Vec<usize> = calls.iter().map(|call| call.request.to_string().len()).collect();
    let full = usize::try_from(FULL).unwrap();
    for (nth, size) in sizes.iter().enumerate().skip(full) {
        assert!(
            alike(*size, sizes[full]),
            "call {nth} on {backend:?}: {size} bytes, and {} before",
            sizes[full]
        );
        assert_eq!(model_server::outcomes(&calls[nth].request), model_server::outcomes(&calls[full].request));
    }
}
