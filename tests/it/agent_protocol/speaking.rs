//! Deltas of a model's text in streams of the Agent Protocol.

use super::{ask, register};
use eventsource_stream::Event;
use serde_json::{Value, json};
use turnstone_tests::sse::data;
use turnstone_tests::{Fleet, Gate, Reply, model_server, sse};

const PIECES: [&str; 3] = ["Low tide ", "is at 14:07", " – bring boots."];

fn is_delta(event: &Event) -> bool {
    event.event == "delta"
}

/// Starts a fleet whose model waits at the first gate before it answers, and at the second after its first delta.
async fn slow_speaker(begin: &Gate, go_on: &Gate) -> Fleet {
    let (begin, go_on) = (begin.clone(), go_on.clone());
    let pieces = PIECES.map(str::to_owned);
    let fleet = Fleet::builder()
        .model(move |_| Reply::Spoken(pieces.to_vec(), go_on.clone()).behind(&begin))
        .start()
        .await;
    register(&fleet).await;
    fleet
}

/// Issue 7, "Streaming": deltas arrive while the model answers, and have no number. A reader that resumes after an
/// event misses no event, sees none twice, and receives the whole text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delta_arrives_before_its_text_and_a_reader_can_resume() {
    let (begin, go_on) = (Gate::default(), Gate::default());
    let fleet = slow_speaker(&begin, &go_on).await;
    let started = ask(&fleet, &json!({"input": "When is low tide?"})).await;
    let (request, run) = (started["request_id"].as_str().unwrap(), started["run_id"].as_str().unwrap());
    let url = format!("{}/agents/lead/getevents/{request}?stream=true", fleet.url);

    // The reader opens the gate: the model sends its first delta after the reader has connected.
    let head = sse::read(&url, None, |seen| {
        begin.open();
        seen.last().is_some_and(is_delta)
    })
    .await;
    let (delta, durable) = head.split_last().unwrap();
    let kinds: Vec<Value> = durable.iter().map(|event| data(event)["type"].clone()).collect();
    assert_eq!(kinds, ["request_started", "chat_request", "completion_call"]);
    let call = data(&durable[2]);
    assert!(call["answer"].is_string(), "{call}");
    assert_eq!(
        data(delta),
        json!({"type": "text_output_delta", "run_id": run, "request_id": request, "agent": "lead", "role": "assistant",
               "depth": 0, "answer": call["answer"], "offset": 0, "content": PIECES[0]})
    );
    assert_eq!(delta.id, durable[2].id, "a piece moves no number");

    // The reader disconnects, resumes and receives the rest.
    go_on.open();
    let tail = sse::read(&url, Some(&durable[2].id), |_| false).await;
    let (pieces, rest): (Vec<&Event>, Vec<&Event>) = tail.iter().partition(|event| is_delta(event));
    assert_eq!(rest.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["4", "5", "6"]);
    assert_eq!(
        (data(rest[1])["type"].as_str(), data(rest[2])["type"].as_str()),
        (Some("text_output"), Some("request_completed"))
    );
    assert_eq!(
        (&data(rest[1])["content"], &data(rest[1])["answer"]),
        (&json!(PIECES.concat()), &call["answer"])
    );
    assert!(pieces.iter().all(|piece| data(piece)["answer"] == call["answer"] && piece.id == "3"));

    // A list contains durable events only.
    let listed = fleet.get(&format!("/agents/lead/getevents/{run}")).await;
    assert_eq!(listed.as_array().unwrap().len(), 6, "{listed}");
    fleet.end().await;
}

/// Deltas join to the text, in order, and arrive after the model call and before the text itself. The stream of a run
/// has the deltas of delegates too, with their name and depth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deltas_arrive_between_their_model_call_and_their_text() {
    let begin = Gate::default();
    let held = begin.clone();
    let free = Gate::default();
    free.open();
    let fleet = Fleet::builder()
        .model(move |request| {
            let system = request["messages"][0]["content"].as_str().unwrap_or_default();
            let said = |text: &str| {
                let pieces = text.split_inclusive(' ').map(str::to_owned).collect();
                Reply::Spoken(pieces, free.clone()).behind(&held)
            };
            match (system.contains("You are scout"), model_server::outcomes(request)) {
                (true, _) => said("all is quiet here"),
                (false, 0) => Reply::call("scout", json!({"input": "look"})),
                (false, _) => said("no event"),
            }
        })
        .start()
        .await;
    register(&fleet).await;
    let run = ask(&fleet, &json!({"input": "go"})).await["run_id"].as_str().unwrap().to_owned();
    let url = format!("{}/agents/lead/getevents/{run}?stream=true", fleet.url);
    // The models answer when the stream has received their calls.
    let seen = sse::read(&url, None, |seen| {
        let last = data(seen.last().unwrap());
        if last["type"] == "completion_call" && last["depth"] == 1 {
            begin.open();
        }
        last["type"] == "request_completed"
    })
    .await;
    let seen: Vec<Value> = seen.iter().map(data).collect();
    let at = |kind: &str, answer: &Value| {
        seen.iter().position(|event| event["type"] == kind && event["answer"] == *answer).unwrap()
    };
    let texts: Vec<&Value> = seen.iter().filter(|event| event["type"] == "text_output").collect();
    assert_eq!(texts.len(), 2, "{seen:#?}");
    for text in texts {
        let answer = &text["answer"];
        let (call, result) = (at("completion_call", answer), at("completion_result", answer));
        let mut heard = String::new();
        for (place, piece) in seen.iter().enumerate() {
            if piece["type"] != "text_output_delta" || piece["answer"] != *answer {
                continue;
            }
            assert!((call..result).contains(&place), "{seen:#?}");
            assert_eq!(piece["offset"], heard.chars().count());
            assert_eq!((&piece["agent"], &piece["depth"]), (&text["agent"], &text["depth"]));
            heard += piece["content"].as_str().unwrap();
        }
        // Deltas that were not sent when the text became durable are dropped.
        assert!(text["content"].as_str().unwrap().starts_with(&heard), "{heard}");
    }
    fleet.end().await;
}

/// AP-A17: an answer that has to pass a check has no deltas, whatever the check is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guarded_answer_has_no_deltas() {
    const GUARDED: &str = r#"
kind: "openagentspec:v1/agent"
name: lead
description: An agent whose answers are checked.
intent: You are lead.
owner: tests
guardrails:
  output: {tool_name: search, assertion: "tool == 'search'"}
"#;
    const FILTERED: &str = r"
apiVersion: ossa/v0.2.9
kind: Agent
metadata: {name: lead, version: 1.0.0, description: An agent whose answers are filtered.}
spec:
  role: You are lead.
  safety: {pii_detection: {types: [email], action: redact}}
";
    for document in [GUARDED, FILTERED] {
        let (begin, free) = (Gate::default(), Gate::default());
        free.open();
        let held = begin.clone();
        let pieces = ["Write to ", "ada@example.com ", "soon"].map(str::to_owned);
        let fleet = Fleet::builder()
            .model(move |_| Reply::Spoken(pieces.to_vec(), free.clone()).behind(&held))
            .start()
            .await;
        fleet.register(document).await;
        let started = ask(&fleet, &json!({"input": "go"})).await;
        let request = started["request_id"].as_str().unwrap();
        let url = format!("{}/agents/lead/getevents/{request}?stream=true", fleet.url);
        let seen = sse::read(&url, None, |_| {
            begin.open();
            false
        })
        .await;
        assert!(!seen.iter().any(is_delta), "{seen:#?}");
        let kinds: Vec<Value> = seen.iter().map(|event| data(event)["type"].clone()).collect();
        assert_eq!(kinds[kinds.len() - 2..], ["text_output", "request_completed"], "{kinds:?}");
        fleet.end().await;
    }
}
