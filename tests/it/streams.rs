//! Every stream of server-sent events, read by an independent client library.

use eventsource_stream::{Event, Eventsource};
use futures::StreamExt;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use turnstone_tests::{Fleet, Reply, fleet, wait};

const AGENT: &str = r#"
kind: "openagentspec:v1/agent"
name: lead
description: An agent.
intent: You are lead.
owner: tests
"#;

/// Reads until the data of an event contains this.
async fn read(request: RequestBuilder, until: &str) -> Vec<Event> {
    let reading = async {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{answer:?}");
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert!(answer.headers()["cache-control"].to_str().unwrap().starts_with("no-"));
        let mut stream = Box::pin(answer.bytes_stream().eventsource());
        let mut events: Vec<Event> = Vec::new();
        while let Some(event) = stream.next().await {
            events.push(event.expect("an event"));
            if events.last().is_some_and(|event| event.data.contains(until)) {
                break;
            }
        }
        events
    };
    let events = wait::output(&format!("an event with {until}"), reading).await;
    assert!(events.last().is_some_and(|event| event.data.contains(until)), "no {until}: {events:#?}");
    for event in &events {
        let _json: Value = serde_json::from_str(&event.data).expect("JSON");
    }
    events
}

fn ids(events: &[Event]) -> Vec<&str> {
    events.iter().filter(|event| event.event != "delta").map(|event| event.id.as_str()).collect()
}

/// Issue 7, "an independent SSE client library reads the streams": each of them is read to the end of a job. Where
/// frames have ids, a reader that resumes after one receives exactly the later frames.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stream_is_read_by_an_independent_client() {
    let fleet = Fleet::builder().model(|_| Reply::text("two\nlines 🐦 \u{2028}")).start().await;
    fleet::install_crypto();
    let http = turnstone_tests::http::client();
    fleet.register(AGENT).await;
    let requested =
        http.post(format!("{}/agents/lead/stream_request", fleet.url)).json(&json!({"input": "go"}));
    let streamed = read(requested, "request_completed").await;
    let first: Value = serde_json::from_str(&streamed[0].data).unwrap();
    let (request, run) = (first["request_id"].as_str().unwrap(), first["run_id"].as_str().unwrap());
    let numbers: Vec<String> = (1..=ids(&streamed).len()).map(|number| number.to_string()).collect();
    assert_eq!(ids(&streamed), numbers);

    for (path, until) in [
        (format!("/agents/lead/getevents/{request}?stream=true"), "request_completed"),
        (format!("/agents/lead/getevents/{run}?stream=true"), "request_completed"),
        (format!("/engagements/{run}/events?stream=true"), "\"job.completed\""),
        (format!("/engagements/{run}/events?stream=true&format=cloudevents"), "\"job.completed\""),
        (format!("/ojs/v1/jobs/{request}/events?stream=true"), "\"job.completed\""),
        (format!("/ojs/v1/events/stream?types=*&subject={request}&after=evt_0.0.0"), "\"job.completed\""),
        (format!("/ojs/v1/events?types=*&subject={request}&after=evt_0.0.0"), "\"job.completed\""),
    ] {
        let get = || http.get(format!("{}{path}", fleet.url)).header("accept", "text/event-stream");
        let whole = read(get(), until).await;
        let known = ids(&whole);
        assert!(known.len() > 2 && known.iter().all(|id| !id.is_empty()), "{path}: {known:?}");
        let rest = read(get().header("last-event-id", known[1]), until).await;
        assert_eq!(ids(&rest), known[2..], "{path}");
    }

    for path in [format!("/agents/lead/getevents/{request}"), format!("/agents/lead/getevents/{run}")] {
        let refused = http.get(format!("{}{path}?since=9999", fleet.url)).send().await.unwrap();
        assert_eq!(refused.status(), 409, "{path}");
        let get = http.get(format!("{}{path}?stream=true&since=9999", fleet.url));
        let anew = read(get.header("accept", "text/event-stream"), "request_completed").await;
        assert_eq!((anew[0].event.as_str(), anew[0].id.as_str()), ("reset", "0"), "{path}");
        assert_eq!(ids(&anew)[1..], numbers, "{path}");
    }

    let message = json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "go"}]}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage", "params": message});
    let requested = http.post(format!("{}/a2a/lead", fleet.url)).header("a2a-version", "1.0").json(&call);
    let reported = read(requested, "TASK_STATE_COMPLETED").await;
    assert!(reported.iter().all(|event| event.event == "message" && event.data.contains("\"jsonrpc\"")));
    fleet.end().await;
}
