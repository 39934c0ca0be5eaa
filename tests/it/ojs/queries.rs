//! Unknown query parameters are refused: a typo would filter nothing, without a trace.

use super::on_every_store;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_every_store![an_unknown_parameter_is_refused, events_of_a_job_come_as_cloud_events];

async fn an_unknown_parameter_is_refused(server: &OjsServer) {
    for (path, meant) in [
        ("/ojs/v1/admin/jobs?statee=active", "did you mean `state`"),
        ("/ojs/v1/admin/jobs?limit=-1", "did you mean `per_page`"),
        ("/ojs/v1/jobs?per_page=5", "did you mean `limit`"),
        ("/ojs/v1/events?cursor=abc", "did you mean `after`"),
        ("/ojs/v1/events?types=job.complete", "did you mean `job.completed`"),
        ("/ojs/v1/events?types=job.*,nope", "`nope` is the name of no event"),
        ("/reviews?colour=red", "is no parameter of this endpoint, which has"),
    ] {
        let reply = server.get(path).await.expect(400);
        assert!(reply.text.contains(meant), "{path}: {}", reply.text);
    }
    // Both forms of pagination are accepted together, and a list continues where its answer says.
    for path in [
        "/ojs/v1/admin/jobs?page=1&per_page=5&limit=5&offset=0",
        "/ojs/v1/jobs?limit=5&cursor=0",
        "/ojs/v1/events?types=*,io.ossa.tool.*",
        "/workers?anything=1",
    ] {
        server.get(path).await.expect(200);
    }
}

/// The same events as in the feed, with the same ids.
async fn events_of_a_job_come_as_cloud_events(server: &OjsServer) {
    let id = server.push(&json!({"type": "mail.send", "args": [], "options": {"queue": "q"}})).await;
    let path = format!("/ojs/v1/jobs/{id}/events?format=cloudevents");
    let page = server.get(&path).await.expect(200).json();
    // The feed waits for open transactions of other tests on the same server.
    let mut feed = Value::Null;
    let fed = async || {
        feed = server.get("/ojs/v1/events").await.expect(200).json();
        feed["events"].as_array().is_some_and(|events| !events.is_empty())
    };
    server.fleet.until("the feed has it", fed).await;
    assert_eq!(page["events"].as_array().map(Vec::len), Some(1), "{page:#}");
    let event = &page["events"][0];
    assert_eq!(event, &feed["events"][0]);
    assert_eq!((&event["type"], &event["subject"]), (&json!("job.enqueued"), &json!(id)));
    assert_eq!(event["data"]["queue"], "q");
    let after = format!("{path}&since={}", page["cursor"]);
    assert_eq!(server.get(&after).await.expect(200).json()["events"], json!([]));
    let stream = format!("/ojs/v1/jobs/{id}/events?format=xml");
    assert!(server.get(&stream).await.expect(400).text.contains("turnstone, cloudevents"));
}
