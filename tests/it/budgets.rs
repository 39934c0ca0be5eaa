//! Budgets in money, per tenant, day and model, from outside: the charges, the behaviour at a limit, and how a raise
//! resumes jobs.

use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use turnstone_domain::JobState;
use turnstone_tests::model_server::Gate;
use turnstone_tests::{Backend, Fleet, Reply};
use turnstone_worker::model::Prices;

const DAY: i64 = 86_400_000;

/// A dollar for a thousand prompt tokens, half of it for cached ones, two for a thousand completion tokens.
fn prices() -> Prices {
    let price =
        json!({"input_per_million": 1000, "cached_input_per_million": 500, "output_per_million": 2000});
    let configs: BTreeMap<String, _> = ["test/m", "test/small"]
        .iter()
        .map(|name| ((*name).to_owned(), serde_json::from_value(price.clone()).unwrap()))
        .collect();
    let tools = BTreeMap::from([("search".to_owned(), "0.25".parse().unwrap())]);
    Prices::from_config(&configs, tools).unwrap()
}

async fn fleet(backend: Backend, script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Fleet {
    let mut fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
    fleet.add_worker_with(8, |deps| deps.with_prices(prices()));
    fleet
}

fn job(more: Value) -> Value {
    let mut job = json!({"type": "agent.spend", "args": ["go"], "ext_agent_model": "m", "ext_agent_max_tokens": 100,
                         "options": {"retry": {"max_attempts": 3, "jitter": false}}});
    if let (Value::Object(job), Value::Object(more)) = (&mut job, more) {
        job.extend(more);
    }
    job
}

async fn set(fleet: &Fleet, name: &str, limits: Value) -> Value {
    let path = format!("/budgets/{}", name.replace('/', "%2F"));
    let (status, budget) = fleet.send(Method::PUT, &path, limits.to_string()).await;
    assert!(status.is_success(), "{budget}");
    budget
}

async fn raise(fleet: &Fleet, name: &str, by: Value) {
    let path = format!("/budgets/{}/raise", name.replace('/', "%2F"));
    let (status, budget) = fleet.post(&path, &by).await;
    assert!(status.is_success(), "{budget}");
}

async fn budget(fleet: &Fleet, name: &str) -> Value {
    fleet.get(&format!("/budgets/{}", name.replace('/', "%2F"))).await
}

/// Cached input has its own price; every view has the cost of a call.
#[tokio::test]
async fn every_view_has_the_cost_of_a_job() {
    for backend in Backend::ALL {
        let usage = json!({"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30,
                           "prompt_tokens_details": {"cached_tokens": 10}});
        let fleet = fleet(backend, move |request| match request["messages"].as_array().map(Vec::len) {
            Some(1) => Reply::call("search", json!({"q": 1})),
            _ => Reply::Odd("done".to_owned(), usage.clone()),
        })
        .await;
        set(&fleet, "tenant/acme", json!({"cost": "100"})).await;
        let id =
            fleet.push(&job(json!({"tenant_id": "acme", "ext_agent_tools": [{"name": "search"}]}))).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        // 12 + 14 thousandths, a quarter for the tool, then 10 + 5 + 20 thousandths.
        assert_eq!(done["ext_agent_cost"], "0.311", "{done:#}");
        let engagement = fleet.engagement_of(&id).await;
        let state = fleet.get(&format!("/engagements/{engagement}")).await;
        assert_eq!((&state["cost"]["used"], &state["cost"]["reserved"]), (&json!("0.311"), &json!("0.00")));
        let cost = fleet.get(&format!("/engagements/{engagement}/cost")).await;
        let infer = cost["phases"].as_array().unwrap().iter().find(|part| part["name"] == "infer").unwrap();
        assert_eq!(
            (&infer["cost"], &infer["tokens_cached"], &infer["runs"]),
            (&json!("0.061"), &json!(10), &json!(2))
        );
        assert_eq!(
            (&cost["tools"][0]["name"], &cost["tools"][0]["cost"]),
            (&json!("search"), &json!("0.25"))
        );
        let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
        assert_eq!(audit["cost"]["tools"], cost["tools"]);
        let acme = budget(&fleet, "tenant/acme").await;
        assert_eq!(acme["rows"][0]["cost"]["used"], "0.311");
        let daily = fleet.get("/costs").await;
        assert_eq!(
            (&daily["costs"][0]["tenant"], &daily["costs"][0]["model"]),
            (&json!("acme"), &json!("test/m"))
        );
        assert_eq!(daily["costs"][0]["cost"], "0.061");
        fleet.end().await;
    }
}

/// OAS-41, OAS-43: the tool of a guardrail is charged to every budget like any tool. It is not called when too little
/// is left.
#[tokio::test]
async fn guardrails_are_charged() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |_| Reply::text("done")).await;
        let guards = "guardrails:\n  input: {tool_name: search, assertion: \"true\"}\n  output: {tool_name: search, assertion: \"true\"}\n";
        fleet.register(turnstone_tests::documents::oas("guarded", guards)).await;
        let ask = job(json!({"tenant_id": "acme", "meta": {"agent": "guarded"}}));
        set(&fleet, "tenant/acme", json!({"cost": "0.2"})).await;
        let id = fleet.push(&ask).await;
        let waiting = fleet.wait_for(&id, &[JobState::Retryable]).await;
        assert_eq!(waiting["error"]["code"], "AGENT_TOKEN_BUDGET_EXCEEDED", "{waiting:#}");
        assert!(fleet.tools.calls().is_empty() && fleet.models.calls().is_empty());
        raise(&fleet, "tenant/acme", json!({"cost": "10"})).await;
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        let engagement = fleet.engagement_of(&id).await;
        let cost = fleet.get(&format!("/engagements/{engagement}/cost")).await;
        let of = |name: &str| {
            let phases = cost["phases"].as_array().unwrap();
            phases.iter().find(|part| part["name"] == name).unwrap()["cost"].clone()
        };
        assert_eq!((of("norm"), of("emit")), (json!("0.25"), json!("0.25")), "{cost:#}");
        let done = fleet.job(&id).await;
        let acme = budget(&fleet, "tenant/acme").await;
        assert_eq!(acme["rows"][0]["cost"]["used"], done["ext_agent_cost"], "{acme:#}");
        assert_eq!(fleet.tools.calls_of("search"), 2);
        fleet.end().await;
    }
}

/// D1: the later attempt is on the next day, and calls the model only then.
#[tokio::test]
async fn a_day_that_is_used_up_is_retried_on_the_next() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |_| Reply::text("done")).await;
        set(&fleet, "tenant/acme", json!({"tokens_per_day": 10})).await;
        let id = fleet.push(&job(json!({"tenant_id": "acme"}))).await;
        let waiting = fleet.wait_for(&id, &[JobState::Retryable]).await;
        assert_eq!(waiting["error"]["code"], "AGENT_TOKEN_BUDGET_EXCEEDED", "{waiting:#}");
        assert!(fleet.models.calls().is_empty());
        let midnight = (fleet.now().0.div_euclid(DAY) + 1) * DAY;
        fleet.clock.advance_ms(midnight - fleet.now().0 - 1);
        fleet.tick().await;
        assert_eq!(fleet.job(&id).await["state"], "retryable", "it is still today");
        set(&fleet, "agent/none", json!({"tokens": 1})).await;
        fleet.clock.advance_ms(1);
        fleet.tick().await;
        let again = fleet.wait_for(&id, &[JobState::Retryable, JobState::Completed]).await;
        assert_ne!(again["state"], "completed", "ten tokens are too few on any day");
        raise(&fleet, "tenant/acme", json!({"tokens_per_day": 5_000})).await;
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        assert_eq!(fleet.models.calls().len(), 1);
        fleet.end().await;
    }
}

/// Parking is no failure and holds nothing; a raise resumes the job where it stopped.
#[tokio::test]
async fn a_raise_resumes_a_parked_job() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |_| Reply::text("done")).await;
        set(&fleet, "model/test/m", json!({"cost": "0.01", "on_exceed": "park"})).await;
        let id = fleet.push(&job(json!({}))).await;
        let parked = fleet.wait_for(&id, &[JobState::Pending]).await;
        assert!(parked.get("error").is_none_or(Value::is_null), "{parked:#}");
        assert_eq!(fleet.number("SELECT count(*) FROM reservations").await, 0);
        assert!(fleet.models.calls().is_empty());
        let names = fleet.event_names(&id).await;
        assert!(names.ends_with(&["budget.exceeded".to_owned(), "job.parked".to_owned()]), "{names:?}");
        assert_eq!(budget(&fleet, "model/test/m").await["rows"][0]["waiting"], 1);
        raise(&fleet, "model/test/m", json!({"cost": "10"})).await;
        let done = fleet.settled(&id).await;
        assert_eq!((&done["state"], &done["ext_agent_cost"]), (&json!("completed"), &json!("0.02")));
        fleet.end().await;
    }
}

/// After a week without a raise a parked job is discarded, and nothing was bought.
#[tokio::test]
async fn a_parked_job_is_discarded_without_a_raise() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |_| Reply::text("done")).await;
        set(&fleet, "model/test/m", json!({"cost": "0.01", "on_exceed": "park"})).await;
        let id = fleet.push(&job(json!({}))).await;
        fleet.wait_for(&id, &[JobState::Pending]).await;
        fleet.clock.advance_ms(3 * DAY);
        // A raise that is too small does not restart the week.
        raise(&fleet, "model/test/m", json!({"cost": "0.001"})).await;
        let twice = &turnstone_tests::journal::event_count("job.parked");
        fleet.until("it parks again", async || fleet.number(twice).await == 2).await;
        fleet.clock.advance_ms(4 * DAY);
        fleet.tick().await;
        let done = fleet.settled(&id).await;
        assert_eq!(
            (&done["state"], &done["error"]["code"]),
            (&json!("discarded"), &json!("AGENT_TOKEN_BUDGET_EXCEEDED"))
        );
        assert!(done["error"]["message"].as_str().unwrap().contains("it was not raised"), "{done:#}");
        assert!(fleet.models.calls().is_empty());
        fleet.end().await;
    }
}

#[tokio::test]
async fn an_engagements_own_budget_is_raised_by_a_patch() {
    let fleet = fleet(Backend::Sqlite, |_| Reply::text("done")).await;
    let id = fleet.push(&job(json!({"ext_agent_cost_budget": "0.000001"}))).await;
    let waiting = fleet.wait_for(&id, &[JobState::Retryable]).await;
    assert_eq!(waiting["error"]["code"], "AGENT_TOKEN_BUDGET_EXCEEDED");
    let path = format!("/engagements/{}/budget", fleet.engagement_of(&id).await);
    let (status, changed) =
        fleet.send(Method::PATCH, &path, r#"{"cost": "5", "raise": {"cost": "1"}}"#).await;
    assert!(status.is_success(), "{changed}");
    assert_eq!(changed["cost"]["limit"], "6.00");
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    for (body, words) in [
        (r#"{"tokens": -1}"#, "negative"),
        (r#"{"toknes": 1}"#, "toknes"),
        (r#"{"raise": {}}"#, "raise"),
        (r#"{"raise": {"tokens": -5}}"#, "raise.tokens cannot be used"),
        (r#"{"raise": {"cost": "x"}}"#, "raise.cost cannot be used"),
    ] {
        let (status, refused) = fleet.send(Method::PATCH, &path, body).await;
        assert!(status.is_client_error() && refused.to_string().contains(words), "{body}: {refused}");
    }
    fleet.end().await;
}

#[tokio::test]
async fn a_budget_that_says_fail_discards() {
    let fleet = fleet(Backend::Sqlite, |_| Reply::text("done")).await;
    set(&fleet, "fleet", json!({"tokens": 1, "on_exceed": "fail"})).await;
    let id = fleet.push(&job(json!({}))).await;
    assert_eq!(fleet.settled(&id).await["state"], "discarded");
    assert!(fleet.models.calls().is_empty());
    fleet.end().await;
}

/// A money budget needs prices: a call without one is refused, and the error names the missing section.
#[tokio::test]
async fn a_model_without_a_price_is_not_called_under_a_money_budget() {
    let fleet = fleet(Backend::Sqlite, |_| Reply::text("done")).await;
    set(&fleet, "fleet", json!({"cost_per_day": "1000"})).await;
    let unknown = job(json!({"ext_agent_model": "unknown", "options": {"retry": {"max_attempts": 1}}}));
    let id = fleet.push(&unknown).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["state"], "discarded");
    let message = done["error"]["message"].as_str().unwrap();
    assert!(message.contains("[prices.\"test/unknown\"]"), "{message}");
    assert!(fleet.models.calls().is_empty());
    let id =
        fleet.push(&job(json!({"ext_agent_model": "unknown", "ext_agent_fallback_models": ["m"]}))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed", "the next model has a price");
    fleet.end().await;
}

/// When the budget of a model is used up, the next one of the list is called.
#[tokio::test]
async fn the_next_model_is_called_when_the_first_has_no_budget_left() {
    let fleet = fleet(Backend::Sqlite, |_| Reply::text("done")).await;
    set(&fleet, "model/test/m", json!({"tokens": 1})).await;
    let id = fleet.push(&job(json!({"ext_agent_fallback_models": ["small"]}))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    assert_eq!(fleet.models.calls()[0].request["model"], "small");
    fleet.end().await;
}

/// The rest of a shared budget caps the answer, like the rest of the engagement's own.
#[tokio::test]
async fn an_answer_is_capped_by_what_is_left_in_money() {
    let fleet = fleet(Backend::Sqlite, |_| Reply::text("done")).await;
    set(&fleet, "fleet", json!({"cost": "0.30"})).await;
    let id = fleet.push(&job(json!({"ext_agent_max_tokens": 100_000}))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let requested = fleet.models.calls()[0].request.clone();
    let most = requested["max_completion_tokens"].as_i64().or(requested["max_tokens"].as_i64()).unwrap();
    assert!((1..150).contains(&most), "{most}");
    fleet.end().await;
}

#[tokio::test]
async fn tenants_do_not_see_each_others_budgets() {
    let fleet = fleet(Backend::Sqlite, |_| Reply::text("done")).await;
    set(&fleet, "tenant/acme", json!({"tokens": 1_000_000, "warn_at": 50})).await;
    set(&fleet, "fleet", json!({"tokens": 1_000_000})).await;
    let http = turnstone_tests::http::client();
    let requested = async |method: Method, path: &str, body: &'static str| {
        let request = http.request(method, format!("{}{path}", fleet.url)).body(body);
        let answer =
            request.header("x-ojs-tenant", "other").header("content-type", "application/json").send();
        answer.await.unwrap()
    };
    let seen: Value = requested(Method::GET, "/budgets", "").await.json().await.unwrap();
    assert_eq!(seen["budgets"], json!([]));
    for (method, path, body) in [
        (Method::PUT, "/budgets/tenant%2Facme", r#"{"tokens": 5}"#),
        (Method::PUT, "/budgets/fleet", r#"{"tokens": 5}"#),
        (Method::POST, "/budgets/tenant%2Facme/raise", r#"{"tokens": 5}"#),
        (Method::DELETE, "/budgets/tenant%2Facme", ""),
    ] {
        assert_eq!(requested(method.clone(), path, body).await.status(), 403, "{method} {path}");
    }
    assert_eq!(requested(Method::GET, "/budgets/tenant%2Facme", "").await.status(), 404);
    assert_eq!(budget(&fleet, "tenant/acme").await["limits"]["tokens"], 1_000_000);
    fleet.end().await;
}

/// The status names the budget and what is short, a raise that is too little says so, and one that suffices lets the job go on.
#[tokio::test]
async fn an_engagement_says_which_budget_it_reached_and_what_is_short() {
    for backend in Backend::ALL {
        let mut fleet = Fleet::builder().on(backend).workers(0).model(|_| Reply::text("done")).start().await;
        let id = fleet.push(&job(json!({"ext_agent_token_budget": 10}))).await;
        let path = format!("/engagements/{}", fleet.engagement_of(&id).await);
        let own = format!("{path}/budget");
        let (status, changed) = fleet.send(Method::PATCH, &own, r#"{"on_exceed": "park"}"#).await;
        assert!(status.is_success() && changed["awaited"].is_null(), "{changed}");
        fleet.add_worker(8);
        fleet.wait_for(&id, &[JobState::Pending]).await;
        let shown = fleet.get(&path).await;
        assert_eq!(
            (&shown["status"], &shown["awaiting"]["kind"]),
            (&json!("budget_reached"), &json!("budget"))
        );
        let awaited = &shown["awaiting"]["budget"];
        let needed = awaited["needed"].as_i64().unwrap();
        assert_eq!(
            (&awaited["name"], &awaited["unit"], &awaited["left"], &awaited["short"]),
            (&json!("engagement"), &json!("tokens"), &json!(10), &json!(needed - 10))
        );
        let raise = async |tokens: i64| {
            let body = json!({"raise": {"tokens": tokens}}).to_string();
            let (status, changed) = fleet.send(Method::PATCH, &own, body).await;
            assert!(status.is_success(), "{changed}");
            changed["awaited"]["short"].clone()
        };
        assert_eq!(raise(1).await, json!(needed - 11), "it is still too little");
        fleet
            .until("it parks again", async || fleet.get(&path).await["awaiting"]["budget"]["left"] == 11)
            .await;
        assert_eq!(raise(needed - 11).await, json!(0));
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        fleet.end().await;
    }
}

/// An answer that costs more than was reserved for it is paid whole, and no call starts after it.
#[tokio::test]
async fn an_answer_above_its_reservation_is_paid_whole() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |_| Reply::Text("done".to_owned(), (200, 500))).await;
        set(&fleet, "fleet", json!({"cost": "0.9"})).await;
        let once = || job(json!({"options": {"retry": {"max_attempts": 1}}}));
        let id = fleet.push(&once()).await;
        let done = fleet.settled(&id).await;
        assert_eq!(
            (&done["state"], &done["ext_agent_cost"]),
            (&json!("completed"), &json!("1.20")),
            "{done:#}"
        );
        let cost = budget(&fleet, "fleet").await["rows"][0]["cost"].clone();
        assert_eq!(
            (&cost["used"], &cost["left"], &cost["reserved"]),
            (&json!("1.20"), &json!("0.00"), &json!("0.00"))
        );
        assert_eq!(fleet.events_named(&id, "budget.reservation_exceeded").await.len(), 1);
        let id = fleet.push(&once()).await;
        assert_eq!(fleet.settled(&id).await["error"]["code"], "AGENT_TOKEN_BUDGET_EXCEEDED");
        assert_eq!(fleet.models.count(), 1, "nothing starts after it");
        fleet.end().await;
    }
}

/// An impossible count breaks no limit in money.
#[tokio::test]
async fn an_impossible_report_breaks_no_money_limit() {
    for usage in [
        json!({"prompt_tokens": i64::MAX, "completion_tokens": i64::MAX, "total_tokens": i64::MAX}),
        json!({"prompt_tokens": 0, "completion_tokens": 1_000_000}),
        json!({"prompt_tokens": -5, "completion_tokens": -5, "prompt_tokens_details": {"cached_tokens": 1_000_000}}),
        Value::Null,
    ] {
        let said = usage.clone();
        let fleet = fleet(Backend::Sqlite, move |_| Reply::Odd("done".to_owned(), said.clone())).await;
        set(&fleet, "fleet", json!({"cost": "0.9", "warn_at": 1})).await;
        for _ in 0..4 {
            let id = fleet.push(&job(json!({"options": {"retry": {"max_attempts": 1}}}))).await;
            fleet.settled(&id).await;
        }
        let broken = "SELECT count(*) FROM totals WHERE money_settled + money_reserved > money_limit OR money_reserved <> 0";
        assert_eq!(fleet.number(broken).await, 0, "{usage}");
        assert_eq!(fleet.number("SELECT count(*) FROM reservations").await, 0, "{usage}");
        fleet.end().await;
    }
}

/// A limit is set during a paid call, below the cost of that call: the answer is kept and booked.
#[tokio::test]
async fn a_money_limit_that_is_set_during_a_call_leaves_room_for_it() {
    for backend in Backend::ALL {
        let gate = Gate::default();
        let answer = Reply::text("done").behind(&gate);
        let fleet = fleet(backend, move |_| answer.clone()).await;
        set(&fleet, "fleet", json!({"tokens": 100_000})).await;
        let id = fleet.push(&job(json!({}))).await;
        fleet.models.seen(1).await;
        let path = format!("/engagements/{}/budget", fleet.engagement_of(&id).await);
        let (status, changed) = fleet.send(Method::PATCH, &path, r#"{"cost": "0.000001"}"#).await;
        assert!(status.is_success(), "{changed}");
        set(&fleet, "fleet", json!({"tokens": 100_000, "cost": "0.000001"})).await;
        gate.open();
        let done = fleet.settled(&id).await;
        assert_eq!(
            (&done["state"], &done["ext_agent_cost"]),
            (&json!("completed"), &json!("0.02")),
            "{done:#}"
        );
        assert_eq!(budget(&fleet, "fleet").await["rows"][0]["cost"]["used"], "0.02");
        assert_eq!(fleet.models.calls().len(), 1, "it is paid for once");
        fleet.end().await;
    }
}

/// Reservations of running calls are returned without a raise: the parked job checks again.
#[tokio::test]
async fn a_job_parked_behind_a_running_call_resumes_by_itself() {
    for backend in Backend::ALL {
        let gate = Gate::default();
        let slow = Reply::text("done").behind(&gate);
        let script = move |request: &Value| match request["messages"][0]["content"].as_str() {
            Some("slow") => slow.clone(),
            _ => Reply::text("done"),
        };
        let fleet = fleet(backend, script).await;
        // The first may use nearly all of it; the long prompt of the second one does not fit beside it.
        set(&fleet, "fleet", json!({"tokens": 1_500, "on_exceed": "park"})).await;
        let first = fleet.push(&job(json!({"args": ["slow"], "ext_agent_max_tokens": 1_300}))).await;
        fleet.models.seen(1).await;
        let second = fleet.push(&job(json!({"args": ["x".repeat(500)]}))).await;
        fleet.wait_for(&second, &[JobState::Pending]).await;
        gate.open();
        assert_eq!(fleet.settled(&first).await["state"], "completed");
        fleet.clock.advance_ms(5_000);
        fleet.tick().await;
        assert_eq!(fleet.settled(&second).await["state"], "completed");
        fleet.end().await;
    }
}

/// An answer that a shared budget truncated is no result. Its job waits for that budget, and not for its
/// engagement's.
#[tokio::test]
async fn an_answer_that_a_shared_budget_cut_waits_for_that_budget() {
    let script = |request: &Value| match request["max_tokens"]
        .as_i64()
        .or(request["max_completion_tokens"].as_i64())
    {
        Some(100) => Reply::text("done"),
        _ => Reply::Ended("It was a dark and".to_owned(), "length"),
    };
    let fleet = fleet(Backend::Sqlite, script).await;
    set(&fleet, "fleet", json!({"tokens": 90, "on_exceed": "park"})).await;
    let id = fleet.push(&job(json!({}))).await;
    fleet.wait_for(&id, &[JobState::Pending]).await;
    assert_eq!(fleet.models.calls().len(), 1);
    assert_eq!(budget(&fleet, "fleet").await["rows"][0]["waiting"], 1);
    raise(&fleet, "fleet", json!({"tokens": 10_000})).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    fleet.end().await;
}
