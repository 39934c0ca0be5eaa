//! Clients that do not read their stream.

use super::{ask, register};
use crate::program::Program;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use turnstone_api::ServeLimits;
use turnstone_domain::EngagementId;
use turnstone_store::News;
use turnstone_tests::{Backend, Fleet, Reply, sse, wait};

/// Length and number of the events: far more than the system buffers for a connection.
const LENGTH: usize = 64 * 1024;
const EVENTS: i64 = 320;
/// Events that are published together.
const TOGETHER: i64 = 64;
/// The most bytes of events that the server reads at once: a page.
const PAGE: usize = 1024 * 1024;
/// The receive buffer of an idle client, in bytes.
const RECEIVED: u32 = 4096;
/// How many clients are idle at once.
const IDLERS: usize = 16;

/// Publishes more events of a run than the buffers of a client that does not read can hold.
async fn tell_much(fleet: &Fleet, run: &EngagementId, events: i64) {
    let runs = &fleet.store.runs;
    let request = runs.run_requests(run).await.unwrap()[0].job.clone();
    let text = "x".repeat(LENGTH);
    for _ in 0..events / TOGETHER {
        let reported = runs.position(run).await.unwrap();
        let event = |id: i64| json!({"id": id, "type": "tool_result", "text_result": text}).to_string();
        let events = (1..=TOGETHER).map(|next| (request.clone(), event(reported.last + next))).collect();
        let news = News { events, requests: Vec::new(), marks: reported.marks };
        assert!(runs.advance(run, reported.last, news).await.unwrap());
    }
}

/// Opens a client that follows a run, has a small receive buffer, and reads nothing.
async fn idler(api: &str, run: &str) -> TcpStream {
    let host = api.trim_start_matches("http://");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(RECEIVED).unwrap();
    let mut stream = socket.connect(host.parse().unwrap()).await.unwrap();
    let request = format!("GET /agents/lead/getevents/{run}?stream=true HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    stream
}

/// Returns how many bytes the system buffers at most for a connection whose client does not read: the server's send
/// buffer and the client's receive buffer, which the kernel doubles. Returns `None` on a system that does not report
/// them.
fn kept_by_the_system() -> Option<usize> {
    let sizes = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").ok()?;
    let most: usize = sizes.split_whitespace().nth(2)?.parse().ok()?;
    Some(most + 2 * usize::try_from(RECEIVED).ok()?)
}

/// Reads all events of a run and asserts that none is missing.
async fn read_all(url: &str, last: i64) {
    let reading = sse::read(url, None, |seen| seen.last().unwrap().id == last.to_string());
    let read = wait::output("a client that reads is not held up", reading).await;
    let ids: Vec<i64> = read.iter().map(|event| event.id.parse().unwrap()).collect();
    assert_eq!(ids, (1..=last).collect::<Vec<_>>());
}

/// Starts a run with far more events than the system buffers for a connection. Returns its id and the id of its last
/// event.
async fn long_run(fleet: &Fleet, events: i64) -> (String, i64) {
    register(fleet).await;
    let started = ask(fleet, &json!({"input": "go"})).await;
    let (request, run) = (started["request_id"].as_str().unwrap(), started["run_id"].as_str().unwrap());
    assert!(!super::request_events(fleet, request).await.is_empty());
    tell_much(fleet, &run.into(), events).await;
    let last = fleet.store.runs.position(&run.into()).await.unwrap().last;
    (run.to_owned(), last)
}

/// Issue 7, "slow readers are dropped without memory growth": a client that reads nothing is disconnected after it
/// was sent no more than the system buffers. Other clients read every event, and the slow one gets the rest when it
/// resumes after its last event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_disconnected() {
    let limits = ServeLimits { write: Duration::from_secs(1), ..ServeLimits::default() };
    let fleet = Fleet::builder().model(|_| Reply::text("done")).serve_limits(limits).start().await;
    let (run, last) = long_run(&fleet, EVENTS).await;

    let mut idlers = Vec::new();
    for _ in 0..4 {
        idlers.push(idler(&fleet.url, &run).await);
    }
    let url = format!("{}/agents/lead/getevents/{run}?stream=true", fleet.url);
    read_all(&url, last).await;

    for mut idler in idlers {
        // The client reads nothing; a closed connection refuses the write.
        wait::until("the client is let go", async || idler.write_all(b"\r\n").await.is_err()).await;
        let mut kept = Vec::new();
        let _reset = idler.read_to_end(&mut kept).await;
        match kept_by_the_system() {
            Some(most) => assert!(kept.len() <= most + PAGE, "{} bytes were sent", kept.len()),
            None => eprintln!("this system does not report its connection buffers"),
        }
    }
    let rest = sse::read(&url, Some(&(last - 1).to_string()), |_| true).await;
    let event: Value = serde_json::from_str(&rest[0].data).unwrap();
    assert_eq!(event["id"], last);
    fleet.end().await;
}

/// Issue 7, "without memory growth": each idle client of a real server costs it less than two pages, of a stream of
/// twenty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_client_that_does_not_read_costs_the_server_a_page() {
    let fleet = Fleet::builder().on(Backend::Postgres).model(|_| Reply::text("done")).start().await;
    let (run, last) = long_run(&fleet, EVENTS).await;
    let (folder, database) = (turnstone_tests::scratch::folder(), fleet.place.to_string());
    let env = [("DATABASE_URL", database.as_str())];
    let mut api = Program::start(folder.path(), &["api", "--bind", "127.0.0.1:0"], &env);
    let server = api.first_line("turnstone listens on ").await;
    let url = format!("{server}/agents/lead/getevents/{run}?stream=true");
    read_all(&url, last).await;
    let before = api.memory("VmHWM");
    let mut idlers = Vec::new();
    for _ in 0..IDLERS {
        idlers.push(idler(&server, &run).await);
    }
    read_all(&url, last).await;
    match (before, api.memory("VmHWM")) {
        (Some(before), Some(after)) => {
            let more = usize::try_from(after - before).unwrap();
            eprintln!("{IDLERS} idle clients cost {more} bytes");
            assert!(more < IDLERS * 2 * PAGE, "{IDLERS} idle clients cost {more} bytes");
        }
        _ => eprintln!("this system has no /proc: the memory of the server is not measured"),
    }
    drop(idlers);
    api.stop().await;
    fleet.end().await;
}

/// AP-12, AP §3.4: a list that is not the whole says so, and names the `since` of the next request.
#[tokio::test]
async fn a_long_list_names_the_next_request() {
    let fleet = Fleet::builder().start().await;
    let (run, last) = long_run(&fleet, TOGETHER).await;
    let http = turnstone_tests::http::client();
    let (mut since, mut lists, mut newest) = (0, 0, 0);
    loop {
        let url = format!("{}/agents/lead/getevents/{run}?since={since}", fleet.url);
        let answer = http.get(url).send().await.unwrap();
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (more, next) = (header("x-has-more"), header("x-next-since"));
        let events: Value = answer.json().await.unwrap();
        newest = events.as_array().unwrap().last().map_or(newest, |event| event["id"].as_i64().unwrap());
        lists += 1;
        let Some(next) = next else {
            assert_eq!(more, None);
            break;
        };
        assert_eq!((more.as_deref(), next.parse::<i64>().unwrap()), (Some("true"), newest));
        since = newest;
    }
    assert!(lists > 3 && newest == last, "{lists} lists up to {newest} of {last}");
    fleet.end().await;
}
