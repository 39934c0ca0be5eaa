//! No call is granted beyond a budget, and what a provider reports is booked.

use proptest::prelude::*;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply};

fn job(budget: i64, tools: bool) -> Value {
    let mut job = json!({"type": "agent.spend", "args": ["go"], "ext_agent_model": "m", "ext_agent_max_tokens": 200,
                         "ext_agent_token_budget": budget, "options": {"retry": {"max_attempts": 2, "jitter": false}}});
    if tools {
        job["ext_agent_tools"] = json!([{"name": "search"}]);
    }
    job
}

/// AIX-06, AIX-16: an exhausted budget makes the job retryable; a later attempt calls no model.
#[tokio::test]
async fn an_exhausted_budget_spends_nothing_more_and_ends_discarded() {
    let fleet = Fleet::builder().model(|_| Reply::call("search", json!({"n": 1}))).start().await;
    let id = fleet.push(&job(400, true)).await;
    let waiting = fleet.wait_for(&id, &[JobState::Retryable]).await;
    assert_eq!(waiting["error"]["code"], "AGENT_TOKEN_BUDGET_EXCEEDED");
    let (calls, used) = (fleet.models.calls().len(), waiting["ext_agent_tokens_used"].as_i64().unwrap());
    assert!(calls > 0 && used <= 400, "{calls} calls, {used} tokens");
    fleet.clock.advance_ms(60_000);
    fleet.tick().await;
    let done = fleet.wait_for(&id, &[JobState::Discarded]).await;
    assert_eq!(fleet.models.calls().len(), calls, "the later attempt asked no model");
    assert_eq!(done["ext_agent_tokens_used"], used);
    fleet.end().await;
}

#[tokio::test]
async fn a_budget_of_zero_calls_no_model() {
    let fleet = Fleet::builder().start().await;
    let mut job = job(0, false);
    job["options"]["retry"]["max_attempts"] = json!(1);
    let id = fleet.push(&job).await;
    assert_eq!(fleet.settled(&id).await["state"], "discarded");
    assert!(fleet.models.calls().is_empty());
    fleet.end().await;
}

/// The provider's count is booked, because the bill has it, and also above the reservation. An impossible count is not.
#[tokio::test]
async fn the_providers_count_is_booked_unless_it_is_impossible() {
    for (reported, believed) in [(150, true), (i64::MAX - 1, false)] {
        let usage = json!({"prompt_tokens": reported, "completion_tokens": 1, "total_tokens": 0});
        let fleet = Fleet::builder().model(move |_| Reply::Odd("{}".to_owned(), usage.clone())).start().await;
        let job = json!({"type": "agent.spend", "args": ["go"], "ext_agent_model": "m", "ext_agent_max_tokens": 10});
        let id = fleet.push(&job).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        let used = done["ext_agent_tokens_used"].as_i64().unwrap();
        assert_eq!(used == reported + 1, believed, "{used} of {reported}");
        let clamped = fleet.event_names(&id).await.iter().any(|name| name == "budget.usage_clamped");
        assert_eq!(clamped, !believed, "ignored usage is an event");
        assert!(used < 10_000, "{used}");
        fleet.end().await;
    }
}

/// Strange values of `usage` from a hostile provider.
fn odd_usage() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        Just(json!(-1)),
        Just(json!(i64::MAX)),
        Just(json!(i64::MIN)),
        Just(json!(1e300)),
        Just(json!("12")),
        Just(Value::Null),
        (0_i64..5000).prop_map(|n| json!(n)),
    ];
    prop_oneof![
        Just(Value::Null),
        Just(json!({})),
        Just(json!([])),
        Just(json!("much")),
        (number.clone(), number.clone(), number)
            .prop_map(|(p, c, t)| json!({"prompt_tokens": p, "completion_tokens": c, "total_tokens": t})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_hostile_provider_gets_nothing_granted_beyond_the_limit(usages in prop::collection::vec(odd_usage(), 1..6), budget in 0_i64..4000) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let at = std::sync::atomic::AtomicUsize::new(0);
            let fleet = Fleet::builder()
                .model(move |_| {
                    let n = at.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    Reply::Odd("{}".to_owned(), usages[n % usages.len()].clone())
                })
                .start()
                .await;
            let mut ids = Vec::new();
            for _ in 0..4 {
                ids.push(fleet.push(&job(budget, false)).await);
            }
            for id in &ids {
                let done = fleet.settled(id).await;
                let used = done["ext_agent_tokens_used"].as_i64().unwrap_or(0);
                let above = above_reservations(&fleet, id).await;
                assert!(used >= 0 && used - above <= budget, "{used} of {budget}, {above} above: {done:#}");
            }
            let broken = "SELECT count(*) FROM totals WHERE settled < 0 OR reserved <> 0";
            assert_eq!(fleet.number(broken).await, 0);
            fleet.end().await;
        });
    }
}

/// Returns what the answers of a job used above their reservations.
async fn above_reservations(fleet: &Fleet, id: &str) -> i64 {
    let exceeded = fleet.events_named(id, "budget.reservation_exceeded").await;
    exceeded.iter().map(|data| data["booked"].as_i64().unwrap() - data["reserved"].as_i64().unwrap()).sum()
}

/// A provider counts more than was thought: all of it is booked, the next calls reserve as much, and none starts that would
/// not fit.
#[tokio::test]
async fn a_provider_that_counts_more_is_booked_whole_and_reserved_more() {
    for backend in Backend::ALL {
        let call = |request: &Value| {
            let arguments = json!({"n": turnstone_tests::model_server::outcomes(request)});
            Reply::Calls(vec![("search".to_owned(), arguments)], (800, 20))
        };
        let fleet = Fleet::builder().on(backend).model(call).start().await;
        let mut job = job(4_000, true);
        job["ext_agent_max_tokens"] = json!(20);
        job["options"]["retry"]["max_attempts"] = json!(1);
        let id = fleet.push(&job).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["error"]["code"], "AGENT_TOKEN_BUDGET_EXCEEDED", "{done:#}");
        let calls = i64::try_from(fleet.models.count()).unwrap();
        assert_eq!((calls, &done["ext_agent_tokens_used"]), (4, &json!(4 * 820)), "{done:#}");
        let exceeded = fleet.events_named(&id, "budget.reservation_exceeded").await;
        assert_eq!(exceeded[0]["booked"], 820, "{exceeded:?}");
        assert_eq!(exceeded.len(), 1, "the later calls reserved enough: {exceeded:?}");
        fleet.end().await;
    }
}

/// Usage that is absent, or zero beside a text, is estimated from the texts and marked.
#[tokio::test]
async fn usage_that_is_missing_is_estimated_from_the_texts() {
    for backend in Backend::ALL {
        for usage in [Value::Null, json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})] {
            let text = "four ".repeat(40);
            let said = usage.clone();
            let fleet = Fleet::builder()
                .on(backend)
                .model(move |_| Reply::Odd(text.clone(), said.clone()))
                .start()
                .await;
            let id = fleet.push(&job(4_000, false)).await;
            let done = fleet.settled(&id).await;
            let used = done["ext_agent_tokens_used"].as_i64().unwrap();
            assert!((50..200).contains(&used), "{used} tokens for 200 characters: {done:#}");
            let phases = fleet.events_named(&id, "phase.completed").await;
            let infer = phases.iter().find(|data| data["phase"] == "infer").unwrap();
            assert_eq!((&infer["estimated"], &infer["tokens_out"]), (&json!(true), &json!(50)), "{infer:#}");
            fleet.end().await;
        }
    }
}
