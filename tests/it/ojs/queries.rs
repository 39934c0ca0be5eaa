//! Unknown query parameters are refused: a typo would filter nothing, without a trace.

use super::on_every_store;
use reqwest::Method;
use serde_json::json;
use turnstone_tests::OjsServer;

on_every_store![
    an_unknown_parameter_is_refused,
    every_operation_refuses_an_unknown_parameter_and_takes_its_own,
    events_of_a_job_come_as_cloud_events,
];

async fn an_unknown_parameter_is_refused(server: &OjsServer) {
    for (path, meant) in [
        ("/ojs/v1/admin/jobs?statee=active", "did you mean `state`"),
        ("/ojs/v1/admin/jobs?limit=-1", "did you mean `per_page`"),
        ("/ojs/v1/jobs?per_page=5", "did you mean `limit`"),
        ("/ojs/v1/events?cursor=abc", "did you mean `after`"),
        ("/ojs/v1/events?types=job.complete", "did you mean `job.completed`"),
        ("/ojs/v1/events?types=job.*,nope", "`nope` is the name of no event"),
        ("/ojs/v1/events?cursor=", "did you mean `after`"),
        ("/ojs/v1/events?limit=5&cursor=abc", "did you mean `after`"),
        ("/ojs/v1/events/stream?cursor=abc", "did you mean `after`"),
        ("/ojs/v1/admin/jobs?page=1&per_page=5&limit=5&offset=0", "limit is no parameter"),
        ("/ojs/v1/workflows?limit=5&cursor=5", "did you mean `after`"),
        ("/ojs/v1/cron?limit=5", "which has `enabled`"),
        ("/agents/none/getevents?request=r", "did you mean `request_id`"),
        ("/workers?anything=1", "is no parameter of this endpoint, which has none"),
        ("/readyz?verbose", "is no parameter of this endpoint, which has none"),
        ("/openapi.json?pretty=1", "is no parameter of this endpoint, which has none"),
        ("/reviews?colour=red", "is no parameter of this endpoint, which has"),
        ("/ojs/v1/admin/jobs?state=active&state=completed", "state is given twice"),
        ("/ojs/v1/events?types=job.completed&types=job.failed", "types is given twice"),
    ] {
        let reply = server.get(path).await.expect(400);
        assert!(reply.text.contains(meant), "{path}: {}", reply.text);
    }
    // A list continues where its answer says.
    for path in [
        "/ojs/v1/admin/jobs?page=1&per_page=5",
        "/ojs/v1/jobs?limit=5&cursor=0",
        "/ojs/v1/events?types=*,io.ossa.tool.*",
        "/ojs/v1/events?",
        "/workers",
    ] {
        server.get(path).await.expect(200);
    }
    let refused = server.get("/ojs/v1/events?cursor=abc").await.expect(400).json();
    let details = &refused["error"]["details"];
    assert_eq!(
        (&details["field"], details["allowed"].as_array().map(Vec::len)),
        (&json!("cursor"), Some(6)),
        "{refused:#}"
    );
}

/// Returns every operation of the document with its path, in which the id is that of a job.
async fn operations(server: &OjsServer, id: &str) -> Vec<(Method, String, Vec<String>)> {
    let document = server.get("/openapi.json").await.expect(200).json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let filled = path
            .split('{')
            .map(|part| part.split_once('}').map_or(part.to_owned(), |(_, rest)| format!("{id}{rest}")));
        let filled: String = filled.collect();
        for (method, operation) in item.as_object().unwrap() {
            let given = operation["parameters"].as_array().into_iter().flatten();
            let query = given.filter(|given| given["in"] == "query");
            let query = query.map(|given| given["name"].as_str().unwrap().to_owned()).collect();
            operations.push((method.to_uppercase().parse().unwrap(), filled.clone(), query));
        }
    }
    assert!(operations.len() > 190, "{}", operations.len());
    operations
}

/// The described parameters are the accepted ones, and a refused request has no effect.
async fn every_operation_refuses_an_unknown_parameter_and_takes_its_own(server: &OjsServer) {
    let id = server.push(&json!({"type": "mail.send", "args": [], "options": {"queue": "q"}})).await;
    let state = async || {
        let mut state = vec![server.job(&id).await];
        for path in
            ["/ojs/v1/jobs", "/keys", "/freeze", "/budgets", "/agents", "/ojs/v1/cron", "/ojs/v1/queues"]
        {
            state.push(server.get(path).await.expect(200).json());
        }
        state
    };
    let before = state().await;
    let operations = operations(server, &id).await;
    let body = json!({"type": "a.b", "args": [], "job_id": id, "state": {}, "confirm": true, "name": "n", "roles": ["viewer"]});
    for (method, path, known) in &operations {
        let path = format!("{path}?no_such_parameter=1");
        let text = if *method == Method::GET { String::new() } else { body.to_string() };
        let refused = server.send(method.clone(), &path, &[], text).await;
        assert_eq!(refused.status, 400, "{method} {path}: {}", refused.text);
        let error = &refused.json()["error"];
        assert_eq!(error["details"]["field"], "no_such_parameter", "{method} {path}: {error:#}");
        assert_eq!(
            error["details"]["allowed"].as_array().map(Vec::len),
            Some(known.len()),
            "{method} {path}: {error:#}"
        );
    }
    assert_eq!(state().await, before);
    let http = turnstone_tests::http::client();
    for (method, path, known) in operations {
        for name in known {
            // The answer of a stream has no end, so the body is read of an error alone.
            let url = format!("{}{path}?{name}=", server.fleet.url);
            let reply = http.request(method.clone(), url).send().await.unwrap();
            if reply.status() == 400 {
                let text = reply.text().await.unwrap();
                assert!(!text.contains("is no parameter"), "{method} {path}?{name}: {text}");
            }
        }
    }
}

/// The same events as in the feed, with the same ids.
async fn events_of_a_job_come_as_cloud_events(server: &OjsServer) {
    let id = server.push(&json!({"type": "mail.send", "args": [], "options": {"queue": "q"}})).await;
    let path = format!("/ojs/v1/jobs/{id}/events?format=cloudevents");
    let page = server.get(&path).await.expect(200).json();
    let feed = server.get("/ojs/v1/events").await.expect(200).json();
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
