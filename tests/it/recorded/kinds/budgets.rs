//! Engagements with costs, and exhausted budgets.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, Stage, job, retry, with};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use turnstone_tests::{Reply, model_server};
use turnstone_worker::model::Prices;

recordings!(
    everywhere: [priced_models_and_tools],
    sqlite_first: [budget_that_is_raised, parked_until_a_raise],
);

/// A dollar for a thousand prompt tokens, half of it for cached ones, two for a thousand completion tokens.
fn prices() -> Prices {
    let price =
        json!({"input_per_million": 1000, "cached_input_per_million": 500, "output_per_million": 2000});
    let models = ["test/m", "test/small"]
        .map(|name| (name.to_owned(), serde_json::from_value(price.clone()).unwrap()));
    let tools = BTreeMap::from([("search".to_owned(), "0.25".parse().unwrap())]);
    Prices::from_config(&BTreeMap::from(models), tools).unwrap()
}

async fn priced(ground: Ground, script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Stage {
    let mut stage = Stage::of(ground.fleet(script).workers(0)).await;
    add_worker(&mut stage);
    stage
}

fn add_worker(stage: &mut Stage) {
    stage.fleet.add_worker_with(8, |deps| deps.with_prices(prices()));
}

/// Returns a job that may use so many tokens and has two attempts.
fn bounded(tokens: i64) -> Value {
    with(
        job("spend"),
        json!({"ext_agent_token_budget": tokens, "ext_agent_max_tokens": 50, "options": retry(2)}),
    )
}

async fn priced_models_and_tools(ground: Ground) -> Value {
    let usage = json!({"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30,
                       "prompt_tokens_details": {"cached_tokens": 10}});
    let script = move |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": 1})),
        _ => Reply::Odd("done".to_owned(), usage.clone()),
    };
    let mut stage = priced(ground, script).await;
    stage.send(Method::PUT, "/budgets/tenant%2Facme", json!({"cost": "100", "warn_at": 50})).await;
    stage.run(&with(job("spend"), json!({"tenant_id": "acme", "ext_agent_cost_budget": "1.5"}))).await;
    stage.get("/budgets/tenant%2Facme").await;
    stage.recorded().await
}

async fn budget_that_is_raised(ground: Ground) -> Value {
    let mut stage = ground.stage(super::turns::trip).await;
    let id = stage.push(&bounded(400)).await;
    stage.retryable(&id).await;
    let path = format!("/engagements/{}/budget", stage.fleet.engagement_of(&id).await);
    stage.send(Method::PATCH, &path, json!({"raise": {"tokens": 50_000}})).await;
    stage.ended(&id).await;
    stage.recorded().await
}

async fn parked_until_a_raise(ground: Ground) -> Value {
    let mut stage = priced(ground, |_| Reply::text("done")).await;
    stage.send(Method::PUT, "/budgets/model%2Ftest%2Fm", json!({"cost": "0.01", "on_exceed": "park"})).await;
    let id = stage.push(&with(job("spend"), json!({"ext_agent_max_tokens": 100}))).await;
    stage.parked(&id).await;
    stage.get("/budgets/model%2Ftest%2Fm").await;
    // The answer would have what a worker reserves that resumes the turn meanwhile.
    stage.fleet.stop_workers().await;
    stage.post("/budgets/model%2Ftest%2Fm/raise", &json!({"cost": "10"})).await;
    add_worker(&mut stage);
    stage.ended(&id).await;
    stage.recorded().await
}
