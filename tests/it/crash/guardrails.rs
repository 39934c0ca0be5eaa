//! A worker process is killed around the checks of an input guardrail and an output guardrail, under budgets in money.

use super::budgets::{PRICES, TOOL, assert_booked, limit, paid_for_guardrails};
use super::every_write::{Kill, Left, Repeated, Scene, assert_left, kills, undisturbed};
use super::{on_every_store, shared_out};
use crate::policy::visible;
use serde_json::{Value, json};
use turnstone_domain::Phase;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// A word that only the model says.
const SAID: &str = "spoken-word";
const SHARED: [&str; 2] = ["fleet", "model/test/m"];
const SIDES: [&str; 2] = ["input", "output"];

/// Returns the keys under which the guardrail of this side was called.
fn checked_texts(fleet: &Fleet, side: &str) -> Vec<String> {
    let calls = fleet.tools.calls().into_iter();
    calls
        .filter(|call| call.tool == "search" && call.input.get(side).is_some())
        .map(|call| call.key)
        .collect()
}

/// Returns the number of recorded verdicts of this side.
async fn recorded(fleet: &Fleet, side: &str) -> i64 {
    fleet.number(&format!("SELECT count(*) FROM guardrail_checks WHERE side = '{side}'")).await
}

/// A job for an agent that calls `book` once. Its answer passes its output guardrail, or does not.
async fn guarded(backend: Backend, passes: bool) -> Scene {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"note": SAID})),
        _ => Reply::text(format!("a {SAID} answer")),
    };
    let output = if passes { "echo.output.size() > 3" } else { "echo.output == ''" };
    let body = format!(
        "capabilities: {{book: {{}}}}\nguardrails:\n  input: {{tool_name: search, assertion: \"echo.input == 'go'\"}}\n  \
         output: {{tool_name: search, assertion: \"{output}\"}}"
    );
    Scene::set(Fleet::builder().on(backend).model(script), PRICES, async |fleet| {
        fleet.register(oas("quiet", &body)).await;
        limit(fleet, &SHARED, &json!({"tokens": 200_000, "cost": "10"})).await;
        fleet
            .push(
                &json!({"type": "agent.crash", "args": ["go"], "meta": {"agent": "quiet", "user": {"id": "u-17"}}, "ext_agent_model": "m",
                          "ext_agent_max_tokens": 100, "ext_agent_cost_budget": "10"}),
            )
            .await
    })
    .await
}

/// Kills a worker around a write. No endpoint exposes the model's answer before it passes. A recorded verdict is not
/// requested again; another one is requested under the same key, and every request is charged.
async fn is_guarded(backend: Backend, kill: &Kill, passes: bool, plain: &Left) {
    let at = format!("at {kill:?} on {backend:?}");
    let scene = guarded(backend, passes).await;
    let Scene { fleet, id, .. } = &scene;
    scene.die(kill).await;
    let engagement = fleet.engagement_of(id).await;
    let seen = visible(fleet, id, &engagement).await;
    // The answer has passed only after the last settlement.
    let is_over = kill.after && kill.write.kind == "complete";
    assert_eq!(seen.contains(SAID), is_over, "after the kill {at}: {seen}");
    let before = SIDES.map(|side| checked_texts(fleet, side).len());
    let known = [recorded(fleet, "input").await, recorded(fleet, "output").await];
    let paid = paid_for_guardrails(fleet).await / TOOL;
    let requests = i64::try_from(before.iter().sum::<usize>()).unwrap();
    assert!(paid == requests || paid == requests + 1, "{requests} requests, {paid} paid for, {at}");

    scene.end().await;
    for (n, side) in SIDES.iter().enumerate() {
        let keys = checked_texts(fleet, side);
        let again = usize::from(known[n] == 0);
        assert_eq!(keys.len(), before[n] + again, "requests of the {side} guardrail, {at}");
        assert!(keys.iter().all(|key| *key == keys[0]), "one key, {at}: {keys:?}");
        assert_eq!(recorded(fleet, side).await, 1, "verdicts of the {side} guardrail, {at}");
    }
    let since = SIDES.iter().map(|side| checked_texts(fleet, side).len()).sum::<usize>();
    let since = i64::try_from(since).unwrap() - requests;
    let all = paid_for_guardrails(fleet).await / TOOL;
    assert_eq!(all, paid + since, "requests paid for, {at}");
    let seen = visible(fleet, id, &engagement).await;
    assert_eq!(seen.contains(SAID), passes, "at the end, {at}: {seen}");
    // Without a kill each of the two guardrails is called once. A call of `book` in doubt is charged and repeated.
    let doubt = kill.doubts_a_call();
    let calls = usize::try_from(requests + since).unwrap() - 2 + usize::from(doubt && !kill.after);
    let money = (all - 2) * TOOL + if doubt { TOOL } else { 0 };
    assert_left(&scene, plain, kill, Repeated { calls, money }, &at).await;
    assert_booked(fleet, &SHARED, &at).await;
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_exposes_nothing_unchecked_and_repeats_no_verdict() {
    let (writes, plain) = undisturbed(guarded(Backend::Sqlite, true).await).await;
    let of_sides =
        |kill: &Kill| kill.write.phases.iter().any(|at| [(1, Phase::Norm), (2, Phase::Emit)].contains(at));
    let kills_of_sides: Vec<_> = kills(&writes).into_iter().filter(of_sides).collect();
    for (backend, kill) in shared_out(&kills_of_sides) {
        is_guarded(backend, kill, true, &plain).await;
    }
    // The answer is committed before its guardrail is called.
    let (writes, plain) = undisturbed(guarded(Backend::Sqlite, false).await).await;
    let secured = |kill: &Kill| kill.after && kill.write.phases.contains(&(2, Phase::Persist));
    let secured = kills(&writes).into_iter().find(secured).expect("a write before the guardrail");
    is_guarded(Backend::Sqlite, &secured, false, &plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: every write of two turns on both databases, about 80 killed processes"]
async fn guardrails_hold_at_every_write() {
    on_every_store(async |backend| {
        for passes in [true, false] {
            let (writes, plain) = undisturbed(guarded(backend, passes).await).await;
            for kill in kills(&writes) {
                is_guarded(backend, &kill, passes, &plain).await;
            }
        }
    })
    .await;
}
