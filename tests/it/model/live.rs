//! Deltas of an answer while the model generates it; durable events are neither missed nor repeated.

use eventsource_stream::Event;
use serde_json::{Value, json};
use turnstone_tests::model_server::Gate;
use turnstone_tests::sse::data;
use turnstone_tests::{Fleet, Reply, sse};

const PIECES: [&str; 3] = ["Low tide ", "is at 14:07", " – bring boots."];

/// Starts a fleet whose model waits at the first gate before it answers, and at the second after its first delta.
async fn slow_speaker(begin: &Gate, go_on: &Gate) -> Fleet {
    let (begin, go_on) = (begin.clone(), go_on.clone());
    let pieces = PIECES.map(str::to_owned);
    Fleet::builder()
        .model(move |_| Reply::Spoken(pieces.to_vec(), go_on.clone()).behind(&begin))
        .start()
        .await
}

fn job() -> Value {
    json!({"type": "agent.x", "args": ["When is low tide?"], "ext_agent_model": "m"})
}

fn is_delta(event: &Event) -> bool {
    event.event == "delta"
}

/// Issue 5, "Streaming": deltas during the model call, durable events at boundaries.
#[tokio::test]
async fn deltas_arrive_before_the_answer_and_a_reader_can_resume() {
    let (begin, go_on) = (Gate::default(), Gate::default());
    let fleet = slow_speaker(&begin, &go_on).await;
    let id = fleet.push(&job()).await;
    let engagement = fleet.engagement_of(&id).await;
    let url = format!("{}/engagements/{engagement}/events", fleet.url);

    // The reader opens the gate: the model sends its first delta after the reader has connected.
    let head = sse::read(&url, None, |seen| {
        begin.open();
        seen.last().is_some_and(is_delta)
    })
    .await;
    let (delta, durable) = head.split_last().unwrap();
    assert_eq!(delta.id, durable.last().unwrap().id, "a delta moves no cursor");
    assert_eq!(data(delta), json!({"job_id": id, "turn": 1, "offset": 0, "text": PIECES[0]}));
    assert!(
        durable.iter().all(|event| data(event)["data"]["phase"] != "infer"),
        "the answer is not complete"
    );

    // The reader disconnects, resumes and receives the rest.
    let cursor = durable.last().unwrap().id.clone();
    go_on.open();
    let tail = sse::read(&url, Some(&cursor), |_| false).await;
    let ids: Vec<i64> =
        durable.iter().chain(tail.iter().filter(|event| !is_delta(event))).map(sse::number).collect();
    assert_eq!(ids, (1..=i64::try_from(ids.len()).unwrap()).collect::<Vec<_>>(), "each event once, in order");
    assert_eq!(tail.last().unwrap().event, "job.completed");
    assert_eq!(fleet.settled(&id).await["result"], PIECES.concat());
    fleet.end().await;
}

/// Deltas join to the answer, in order, and none comes after the answer itself.
#[tokio::test]
async fn the_deltas_join_to_the_answer() {
    let (begin, go_on) = (Gate::default(), Gate::default());
    go_on.open();
    let fleet = slow_speaker(&begin, &go_on).await;
    let id = fleet.push(&job()).await;
    let url = format!("{}/engagements/{}/events", fleet.url, fleet.engagement_of(&id).await);
    let all = sse::read(&url, None, |_| {
        begin.open();
        false
    })
    .await;
    let answered = all.iter().position(|event| data(event)["data"]["phase"] == "infer").unwrap();
    let mut heard = String::new();
    for (at, delta) in all.iter().enumerate().filter(|(_, event)| is_delta(event)) {
        assert!(at < answered, "late");
        assert_eq!(data(delta)["offset"], heard.chars().count());
        heard += data(delta)["text"].as_str().unwrap();
    }
    // Deltas that were not sent when the answer became durable are dropped.
    assert!(PIECES.concat().starts_with(&heard), "{heard}");
    fleet.end().await;
}

/// An answer with a required format is checked before any of it is sent.
#[tokio::test]
async fn a_guarded_answer_has_no_deltas() {
    let (begin, go_on) = (Gate::default(), Gate::default());
    go_on.open();
    let pieces = ["{\"low\": ", "\"14:07\"}"].map(str::to_owned);
    let (held, free) = (begin.clone(), go_on.clone());
    let fleet = Fleet::builder()
        .model(move |_| Reply::Spoken(pieces.to_vec(), free.clone()).behind(&held))
        .start()
        .await;
    let mut job = job();
    job["ext_agent_output_schema"] = json!({"type": "object", "required": ["low"]});
    let id = fleet.push(&job).await;
    let url = format!("{}/engagements/{}/events", fleet.url, fleet.engagement_of(&id).await);
    let all = sse::read(&url, None, |_| {
        begin.open();
        false
    })
    .await;
    assert_eq!(all.last().unwrap().event, "job.completed");
    assert!(!all.iter().any(is_delta));
    fleet.end().await;
}
