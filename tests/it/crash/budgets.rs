//! A worker process is killed while budgets in money and shared budgets apply. Every durable answer is booked, and a
//! killed worker leaves nothing reserved.

use super::every_write::{Kill, Left, Repeated, Scene, assert_left, continues, kills, undisturbed};
use super::{on_every_store, script, shared_out};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::{Backend, Fleet};

/// A thousandth of a dollar for a prompt token, two for a completion token, a quarter of a dollar for a call of a tool.
pub const PRICES: &str = r#"{"models": {"test/m": {"input_per_million": 1000, "output_per_million": 2000}},
                             "tools": {"book": "0.25", "search": "0.25"}}"#;
/// The price of a tool, in millionths.
pub const TOOL: i64 = 250_000;

/// The cost of the INFER phases, in millionths of the currency.
const OF_MODELS: &str = "SELECT CAST(coalesce(sum(cost), 0) AS BIGINT) FROM journal WHERE model IS NOT NULL";
/// The same, computed from the recorded tokens.
const BY_TOKENS: &str = "SELECT CAST(coalesce(sum(tokens_in * 1000 + tokens_out * 2000), 0) AS BIGINT) FROM journal WHERE model IS NOT NULL";
const OF_TOOLS: &str = "SELECT CAST(coalesce(sum(cost), 0) AS BIGINT) FROM tool_calls";
const OWN_MONEY: &str =
    "SELECT CAST(coalesce(sum(money_settled), 0) AS BIGINT) FROM totals WHERE scope = 'engagement'";
const OWN_TOKENS: &str =
    "SELECT CAST(coalesce(sum(settled), 0) AS BIGINT) FROM totals WHERE scope = 'engagement'";

/// Sets the limits of shared budgets.
pub async fn limit(fleet: &Fleet, names: &[&str], limits: &Value) {
    for name in names {
        let path = format!("/budgets/{}", name.replace('/', "%2F"));
        let (status, budget) = fleet.send(Method::PUT, &path, limits.to_string()).await;
        assert!(status.is_success(), "{budget}");
    }
}

/// Returns the cost of guardrails: the money that neither models nor the agent's own tool calls account for.
pub async fn paid_for_guardrails(fleet: &Fleet) -> i64 {
    let [own, models, tools] =
        [fleet.number(OWN_MONEY).await, fleet.number(OF_MODELS).await, fleet.number(OF_TOOLS).await];
    own - models - tools
}

/// Asserts that every durable model answer is booked at its price, in the budget of its engagement and in every
/// shared budget that applies. No budget is over its limit.
pub async fn assert_booked(fleet: &Fleet, shared: &[&str], at: &str) {
    let (own, models) = (fleet.number(OWN_MONEY).await, fleet.number(OF_MODELS).await);
    assert_eq!(models, fleet.number(BY_TOKENS).await, "the cost of answers, {at}");
    for name in shared {
        let row = |column: &str| format!("SELECT {column} FROM totals WHERE name = '{name}' AND day = -1");
        assert_eq!(
            fleet.number(&row("settled")).await,
            fleet.number(OWN_TOKENS).await,
            "tokens of {name}, {at}"
        );
        // A tool is no part of the cost of a model.
        let money = if name.starts_with("model/") { models } else { own };
        assert_eq!(fleet.number(&row("money_settled")).await, money, "money of {name}, {at}");
    }
    let over = "SELECT count(*) FROM totals WHERE settled + reserved > token_limit OR money_settled + money_reserved > money_limit";
    assert_eq!(fleet.number(over).await, 0, "budgets over their limits, {at}");
    assert_nothing_reserved(fleet, at).await;
}

/// Asserts that no budget has a reservation.
pub async fn assert_nothing_reserved(fleet: &Fleet, at: &str) {
    for reserved in [
        "SELECT count(*) FROM reservations",
        "SELECT count(*) FROM totals WHERE reserved <> 0 OR money_reserved <> 0",
        "SELECT count(*) FROM jobs WHERE reserved <> 0",
    ] {
        assert_eq!(fleet.number(reserved).await, 0, "{reserved}, {at}");
    }
}

const SHARED: [&str; 2] = ["tenant/acme", "model/test/m"];

/// A job that calls `tool` once. The first reservation of each of its model calls is refused, because the longest
/// answer would exceed each of its budgets in money.
async fn with_budgets(backend: Backend, tool: &'static str) -> Scene {
    let fleet = Fleet::builder().on(backend).model(script(tool));
    Scene::set(fleet, PRICES, async |fleet| {
        limit(fleet, &SHARED, &json!({"tokens": 200_000, "cost": "2"})).await;
        fleet
            .push(&json!({"type": "agent.crash", "args": ["go"], "tenant_id": "acme", "ext_agent_model": "m",
                           "ext_agent_max_tokens": 50_000, "ext_agent_token_budget": 100_000,
                           "ext_agent_cost_budget": "4", "ext_agent_tools": [{"name": tool}]}))
            .await
    })
    .await
}

/// Kills a worker around a write. A repeated call costs as much as a call.
async fn books_every_durable_answer(backend: Backend, kill: &Kill, plain: &Left) {
    let at = format!("{kill:?} on {backend:?}");
    let set = |backend| with_budgets(backend, "book");
    let scene = continues(set, (backend, kill), (plain, Some(TOOL))).await;
    assert_eq!(paid_for_guardrails(&scene.fleet).await, 0, "money without a recorded call, {at}");
    assert_booked(&scene.fleet, &SHARED, &at).await;
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_books_money_and_shared_budgets_once() {
    let (writes, plain) = undisturbed(with_budgets(Backend::Sqlite, "book").await).await;
    let money = |kill: &Kill| kill.write.books || kill.write.intent;
    let kills: Vec<_> = kills(&writes).into_iter().filter(money).collect();
    for (backend, kill) in shared_out(&kills) {
        books_every_durable_answer(backend, kill, &plain).await;
    }
}

/// A repeated idempotent call costs as much as a call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_call_is_paid_for_again() {
    on_every_store(async |backend| {
        let (writes, plain) = undisturbed(with_budgets(backend, "search").await).await;
        let unheard = |kill: &Kill| kill.write.outcome && !kill.after;
        let kill = kills(&writes).into_iter().find(unheard).expect("an outcome");
        let scene = with_budgets(backend, "search").await;
        scene.die(&kill).await;
        scene.end().await;
        let at = format!("on {backend:?}");
        assert_left(&scene, &plain, &kill, Repeated { calls: 1, money: TOOL }, &at).await;
        assert_booked(&scene.fleet, &SHARED, &at).await;
        scene.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: every write of two turns on both databases, about 40 killed processes"]
async fn money_and_shared_budgets_are_booked_once_at_every_write() {
    on_every_store(async |backend| {
        let (writes, plain) = undisturbed(with_budgets(backend, "book").await).await;
        for kill in kills(&writes) {
            books_every_durable_answer(backend, &kill, &plain).await;
        }
    })
    .await;
}
