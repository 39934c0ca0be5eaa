//! A worker process is killed around the checks of an input guardrail and an output guardrail, under budgets in money.

use super::budgets::{PRICES, TOOL, assert_booked, limit, paid_for_guardrails};
use super::{assert_paid_once, die, on_every_store, points_of, replace, shared_out};
use crate::policy::{document, register, visible};
use serde_json::{Value, json};
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// A word that only the model says.
const SAID: &str = "spoken-word";
const SHARED: [&str; 2] = ["fleet", "model/test/m"];
const SIDES: [&str; 2] = ["input", "output"];

/// The keys under which the guardrail of this side was asked.
fn asked(fleet: &Fleet, side: &str) -> Vec<String> {
    let calls = fleet.tools.calls().into_iter();
    calls
        .filter(|call| call.tool == "search" && call.input.get(side).is_some())
        .map(|call| call.key)
        .collect()
}

/// How many verdicts of this side are on record.
async fn recorded(fleet: &Fleet, side: &str) -> i64 {
    fleet.number(&format!("SELECT count(*) FROM guardrail_checks WHERE side = '{side}'")).await
}

/// An agent that calls `book` once, and whose answer passes its output guardrail, or does not; and a job for it.
async fn guarded(backend: Backend, passes: bool) -> (Fleet, String) {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"note": SAID})),
        _ => Reply::text(format!("a {SAID} answer")),
    };
    let fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
    let output = if passes { "echo.output.size() > 3" } else { "echo.output == ''" };
    let body = format!(
        "capabilities: {{book: {{}}}}\nguardrails:\n  input: {{tool_name: search, assertion: \"echo.input == 'go'\"}}\n  \
         output: {{tool_name: search, assertion: \"{output}\"}}"
    );
    register(&fleet, &document("quiet", &body)).await;
    limit(&fleet, &SHARED, &json!({"tokens": 200_000, "cost": "10"})).await;
    let id = fleet
        .push(
            &json!({"type": "agent.crash", "args": ["go"], "meta": {"agent": "quiet", "user": {"id": "u-17"}}, "ext_agent_model": "m",
                      "ext_agent_max_tokens": 100, "ext_agent_cost_budget": "10"}),
        )
        .await;
    (fleet, id)
}

/// A crash at this point: no endpoint exposes what the model said before it has passed, a verdict on record is not asked for
/// again, one that is not is asked for under the same key, and every request is paid for.
#[expect(clippy::cognitive_complexity, reason = "one story, told in order")]
async fn is_guarded(backend: Backend, point: &str, passes: bool) {
    let at = format!("at {point} on {backend:?}");
    let (fleet, id) = guarded(backend, passes).await;
    die(&fleet, 4, PRICES, point).await;
    let engagement = fleet.engagement_of(&id).await;
    let seen = visible(&fleet, &id, &engagement).await;
    // Only after the last settlement the answer has passed.
    assert_eq!(seen.contains(SAID), point == "2:emit:after", "after the kill {at}: {seen}");
    let before = SIDES.map(|side| asked(&fleet, side).len());
    let known = [recorded(&fleet, "input").await, recorded(&fleet, "output").await];
    let paid = paid_for_guardrails(&fleet).await / TOOL;
    let requests = i64::try_from(before.iter().sum::<usize>()).unwrap();
    assert!(paid == requests || paid == requests + 1, "{requests} requests, {paid} paid for, {at}");

    replace(&fleet, 4, PRICES, &id).await;
    let done = fleet.job(&id).await;
    let expected = if passes { "completed" } else { "discarded" };
    assert_eq!(done["state"], expected, "{at}: {done:#}");
    for (n, side) in SIDES.iter().enumerate() {
        let keys = asked(&fleet, side);
        let again = usize::from(known[n] == 0);
        assert_eq!(keys.len(), before[n] + again, "requests of the {side} guardrail, {at}");
        assert!(keys.iter().all(|key| *key == keys[0]), "one key, {at}: {keys:?}");
        assert_eq!(recorded(&fleet, side).await, 1, "verdicts of the {side} guardrail, {at}");
    }
    let since = SIDES.iter().map(|side| asked(&fleet, side).len()).sum::<usize>();
    let since = i64::try_from(since).unwrap() - requests;
    assert_eq!(paid_for_guardrails(&fleet).await / TOOL, paid + since, "requests paid for, {at}");
    let seen = visible(&fleet, &id, &engagement).await;
    assert_eq!(seen.contains(SAID), passes, "at the end, {at}: {seen}");
    assert_eq!(fleet.tools.calls_of("book"), 1, "{at}");
    assert_booked(&fleet, &SHARED, &at).await;
    assert_paid_once(&fleet, &id, point).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_shows_nothing_unchecked_and_asks_no_guardrail_twice() {
    for (backend, point) in shared_out(&["1:norm:before", "1:norm:after", "2:emit:before", "2:emit:after"]) {
        is_guarded(backend, point, true).await;
    }
    is_guarded(Backend::Sqlite, "2:persist:after", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: every point of two turns on both databases, 80 killed processes"]
async fn guardrails_hold_at_every_point() {
    on_every_store(async |backend| {
        for point in points_of(1).iter().chain(&points_of(2)) {
            is_guarded(backend, point, true).await;
            // An answer that does not pass is never emitted.
            if !point.starts_with("2:emit") {
                is_guarded(backend, point, false).await;
            }
        }
    })
    .await;
}
