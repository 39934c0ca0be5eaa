//! Messages beyond the window (OSSA §4, RS-52).

use super::{conversation, desk, job};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::{Fleet, Reply};

const SUMMARIZE: &str = "  tools: [{type: http, name: search}]\n  conversation_memory: {window_size: 6, summarization: summarize}\n";

fn is_summary(request: &Value) -> bool {
    request["messages"][0]["content"].as_str().is_some_and(|system| system.starts_with("You sum up"))
}

/// Makes nine calls, and summarizes on request.
fn nine_calls() -> impl Fn(&Value) -> Reply + Send + Sync {
    let requested = AtomicI64::new(0);
    move |request| {
        if is_summary(request) {
            return Reply::Text("they searched".to_owned(), (40, 4));
        }
        match requested.fetch_add(1, Ordering::SeqCst) {
            n @ 0..9 => Reply::call("search", json!({"n": n})),
            _ => Reply::text("done"),
        }
    }
}

/// RS-52, OSSA §4 `summarize`: a summary is charged to the budget, replaces its messages, and is not made in every
/// turn.
#[tokio::test]
async fn a_summary_is_charged_and_replaces_its_messages() {
    let fleet = desk(SUMMARIZE, nine_calls()).await;
    let id = fleet.push(&job(&json!(["go"]))).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let calls = fleet.models.calls();
    let summaries = calls.iter().filter(|call| is_summary(&call.request)).count();
    assert!((2..=5).contains(&summaries), "{summaries}");
    let reported: i64 = calls.iter().map(|call| call.reported).sum();
    assert_eq!(done["ext_agent_tokens_used"], reported, "also the summaries");
    let events = fleet.events_named(&id, "history.summarized").await;
    assert_eq!(events.len(), summaries);
    assert_eq!((&events[0]["tokens_in"], &events[0]["tokens_out"]), (&json!(40), &json!(4)));
    let last = calls.last().unwrap().request["messages"].as_array().unwrap().clone();
    assert_eq!(last[1]["content"], "go", "the input stays");
    let summed =
        last.iter().filter(|m| m["content"].as_str().is_some_and(|c| c.starts_with("Summary of"))).count();
    assert_eq!(summed, 1, "{last:#?}");
    assert!(last.len() <= 3 + 8, "{last:#?}");
    assert_eq!(conversation(&fleet, &id).await.len(), 1 + 9 * 2 + 1 + summaries, "the whole history is kept");
    fleet.end().await;
}

/// OSSA §4: a durable summary is not bought again, even when its worker dies right after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_is_not_bought_again_after_a_crash() {
    let fleet = Fleet::builder().workers(0).model(nine_calls()).start().await;
    super::register(&fleet, SUMMARIZE).await;
    let id = fleet.push(&job(&json!(["go"]))).await;
    // The first summary is made before the model call of turn 4; the worker dies before that answer is durable.
    crate::crash::killed(crate::crash::spawn(&fleet, 1, Some("4:infer:before"))).await;
    let before = fleet.models.calls().iter().filter(|call| is_summary(&call.request)).count();
    assert_eq!(before, 1);
    fleet.release_all().await;
    let second = crate::crash::spawn(&fleet, 1, None);
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    drop(second);
    assert_eq!(done["state"], "completed");
    let until: Vec<Value> =
        conversation(&fleet, &id).await.into_iter().filter(|m| !m["summary"].is_null()).collect();
    let summaries = fleet.models.calls().iter().filter(|call| is_summary(&call.request)).count();
    assert_eq!(summaries, until.len(), "each summary was asked for once");
    fleet.end().await;
}

/// Returns the messages of the last request after the system prompt, and the numbers of the calls among them.
fn seen_last(fleet: &Fleet) -> (Vec<Value>, Vec<i64>) {
    let last = fleet.models.calls().pop().unwrap().request;
    let messages = last["messages"].as_array().unwrap()[1..].to_vec();
    let requested =
        messages.iter().filter_map(|message| message["tool_calls"][0]["function"]["arguments"].as_str());
    let numbers = requested.map(|text| serde_json::from_str::<Value>(text).unwrap()["n"].as_i64().unwrap());
    (messages.clone(), numbers.collect())
}

/// Makes so many searches with arguments of so many bytes, and answers.
fn searches(calls: i64, bytes: usize) -> impl Fn(&Value) -> Reply + Send + Sync {
    let requested = AtomicI64::new(0);
    move |_| match requested.fetch_add(1, Ordering::SeqCst) {
        n if n < calls => Reply::call("search", json!({"n": n, "words": "x".repeat(bytes)})),
        _ => Reply::text("done"),
    }
}

const SEARCHES: &str = "  tools: [{type: http, name: search}]\n  turn_chain: {max_tool_turns: 40}\n";

/// OSSA §4: by default the model receives the newest 20 messages, and the input before them.
#[tokio::test]
async fn the_window_has_twenty_messages() {
    let fleet = desk(SEARCHES, searches(15, 1)).await;
    let id = fleet.push(&job(&json!(["go"]))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let (messages, numbers) = seen_last(&fleet);
    assert_eq!((&messages[0]["content"], messages.len()), (&json!("go"), 1 + 20));
    assert_eq!(numbers, (5..15).collect::<Vec<_>>(), "ten calls with their outcomes");
    assert_eq!(conversation(&fleet, &id).await.len(), 1 + 15 * 2 + 1, "the whole history is kept");
    fleet.end().await;
}

/// OSSA §4: by default the model receives 4,000 tokens of messages, of four bytes each. Five calls with their
/// outcomes, which repeat them, have about 3,980 tokens of these sizes, or 4,020.
#[tokio::test]
async fn the_window_has_four_thousand_tokens() {
    for (bytes, seen) in [(1_512, 4..9), (1_528, 5..9)] {
        let fleet = desk(SEARCHES, searches(9, bytes)).await;
        let id = fleet.push(&job(&json!(["go"]))).await;
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        let (messages, numbers) = seen_last(&fleet);
        let window = messages[1..].iter().map(|message| message.to_string().len()).sum::<usize>();
        assert_eq!(
            (&messages[0]["content"], numbers),
            (&json!("go"), seen.collect()),
            "{window} bytes of JSON"
        );
        fleet.end().await;
    }
}
