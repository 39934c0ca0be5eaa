//! The stream of events.

use super::super::on_sqlite_first;
use super::{job, page};
use turnstone_tests::{OjsServer, sse, wait};

on_sqlite_first![a_stream_has_new_events_and_resumes];

/// Reads a stream until it has shown this many events.
async fn read(server: &OjsServer, query: &str, after: Option<&str>, events: usize) -> Vec<(String, String)> {
    let url = format!("{}/ojs/v1/events/stream{query}", server.fleet.url);
    let reading = sse::read(&url, after, |seen| seen.len() >= events);
    let read = wait::output("the events of the stream", reading).await;
    read.into_iter()
        .map(|event| {
            let data: serde_json::Value = serde_json::from_str(&event.data).unwrap();
            assert!(event.id.starts_with(data["id"].as_str().unwrap()), "{}", event.id);
            assert_eq!(data["type"], event.event);
            (event.id, data["subject"].as_str().unwrap().to_owned())
        })
        .collect()
}

async fn a_stream_has_new_events_and_resumes(server: &OjsServer) {
    let old = server.push(&job("q")).await;
    let begin = page(server, "", 1).await["cursor"].as_str().unwrap().to_owned();
    let url = server.fleet.url.clone();
    let live = tokio::spawn(async move {
        let url = format!("{url}/ojs/v1/events/stream?queues=q");
        sse::read(&url, None, |seen| seen.len() >= 2).await
    });
    // A stream omits events before its connection, so jobs are pushed until it has two events.
    let mut pushed = vec![old];
    server
        .fleet
        .until("the stream has two events", async || {
            pushed.push(server.push(&job("q")).await);
            server.push(&job("another")).await;
            live.is_finished()
        })
        .await;
    let seen = live.await.unwrap();
    let subject = |data: &str| serde_json::from_str::<serde_json::Value>(data).unwrap()["subject"].clone();
    let at = pushed.iter().position(|id| subject(&seen[0].data) == id.as_str()).unwrap();
    assert!(at > 0, "earlier events are omitted");
    assert_eq!(subject(&seen[1].data), pushed[at + 1], "the stream has a hole");

    let all = read(server, "?queues=q", Some(&begin), pushed.len() - 1).await;
    assert_eq!(
        all.iter().map(|(_, subject)| subject).collect::<Vec<_>>(),
        pushed[1..].iter().collect::<Vec<_>>()
    );
    let middle = all.len() / 2;
    let rest = read(server, "?queues=q", Some(&all[middle].0), all.len() - middle - 1).await;
    assert_eq!(rest, all[middle + 1..], "a resumed stream begins after its cursor");
    let rest = read(server, &format!("?queues=q&after={begin}"), None, 1).await;
    assert_eq!(rest, all[..1]);
}
