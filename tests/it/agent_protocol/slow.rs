//! Clients that do not read what is streamed to them.

use super::{ask, register};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use turnstone_domain::EngagementId;
use turnstone_store::News;
use turnstone_tests::{Fleet, Reply, sse, wait};

/// Events of this length, and so many of them: far more than the system keeps for a connection.
const LENGTH: usize = 64 * 1024;
const EVENTS: i64 = 640;
/// Events that are told together.
const TOGETHER: i64 = 64;

/// Tells a run more than anybody can take who does not read.
async fn tell_much(fleet: &Fleet, run: &EngagementId) {
    let runs = &fleet.store.runs;
    let request = runs.run_requests(run).await.unwrap()[0].job.clone();
    let text = "x".repeat(LENGTH);
    for _ in 0..EVENTS / TOGETHER {
        let told = runs.told(run).await.unwrap();
        let event = |id: i64| json!({"id": id, "type": "tool_result", "text_result": text}).to_string();
        let events = (1..=TOGETHER).map(|next| (request.clone(), event(told.last + next))).collect();
        let news = News { events, requests: Vec::new(), marks: told.marks };
        assert!(runs.tell(run, told.last, news).await.unwrap());
    }
}

/// A client that follows a run, takes little at once, and reads nothing.
async fn idler(fleet: &Fleet, run: &str) -> TcpStream {
    let host = fleet.url.trim_start_matches("http://");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(host.parse().unwrap()).await.unwrap();
    let request = format!("GET /agents/lead/getevents/{run}?stream=true HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    stream
}

/// Issue 7, "slow readers are dropped without memory growth": a client that takes nothing is let go, having been sent no more than
/// the system keeps for a connection; those who read get everything, and it gets the rest when it comes back after its last event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_let_go_and_holds_nobody_up() {
    let patience = Duration::from_secs(1);
    let fleet = Fleet::builder().model(|_| Reply::text("done")).patience(patience).start().await;
    register(&fleet).await;
    let started = ask(&fleet, &json!({"input": "go"})).await;
    let (request, run) = (started["request_id"].as_str().unwrap(), started["run_id"].as_str().unwrap());
    assert!(!super::told(&fleet, request).await.is_empty());
    tell_much(&fleet, &run.into()).await;
    let last = fleet.store.runs.told(&run.into()).await.unwrap().last;

    let mut idlers = Vec::new();
    for _ in 0..8 {
        idlers.push(idler(&fleet, run).await);
    }
    let url = format!("{}/agents/lead/getevents/{run}?stream=true", fleet.url);
    // A machine that stands still for a second makes this client one that does not read: it comes back, and misses nothing.
    let read = sse::follow(|| url.clone(), |seen| seen.last().unwrap().id == last.to_string()).await;
    let ids: Vec<i64> = read.iter().map(|event| event.id.parse().unwrap()).collect();
    assert_eq!(ids, (1..=last).collect::<Vec<_>>());

    for mut idler in idlers {
        // Nothing is read; a connection that is closed takes nothing any more.
        wait::until("the client is let go", async || idler.write_all(b"\r\n").await.is_err()).await;
        let mut kept = Vec::new();
        let _reset = idler.read_to_end(&mut kept).await;
        assert!(kept.len() < LENGTH * usize::try_from(EVENTS).unwrap() / 2, "{} bytes were sent", kept.len());
    }
    let rest = sse::read(&url, Some(&(last - 1).to_string()), |_| true).await;
    let event: Value = serde_json::from_str(&rest[0].data).unwrap();
    assert_eq!(event["id"], last);
    fleet.end().await;
}
