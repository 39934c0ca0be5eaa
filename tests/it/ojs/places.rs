//! Lists that are read after the last entry of the part before: entries that arrive or go meanwhile move nothing.

use super::on_sqlite_first;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Fleet, OjsServer, Reply, model_server};

/// Reads a list by parts of two. `next` is the path of the place after a part, and `parameter` takes it.
async fn whole(server: &OjsServer, path: &str, (list, next, parameter): (&str, &str, &str)) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut place = String::new();
    loop {
        let part = server.get(&format!("{path}{place}")).await.expect(200).json();
        let items = part[list].as_array().unwrap();
        assert!(items.len() <= 2, "{path}{place}: {part}");
        let id = |item: &Value| {
            [&item["id"], &item["seq"]].into_iter().find(|id| !id.is_null()).unwrap().to_string()
        };
        ids.extend(items.iter().map(id));
        let Some(after) = part.pointer(next).filter(|after| !after.is_null()) else { return ids };
        place = format!("&{parameter}={}", after.as_str().map_or_else(|| after.to_string(), str::to_owned));
    }
}

fn is_each_once(ids: &[String], expected: usize) -> bool {
    let mut distinct = ids.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    ids.len() == expected && distinct.len() == expected
}

const NEXT: (&str, &str) = ("/pagination/next_after", "after");

async fn workflows_deliveries_and_the_audit_are_read_part_by_part(server: &OjsServer) {
    let step = json!({"type": "a.b", "args": []});
    for _ in 0..5 {
        let chain = json!({"type": "chain", "name": "c", "steps": [step, step]});
        server.post("/ojs/v1/workflows", &chain).await.expect(201);
    }
    let workflows = whole(server, "/ojs/v1/workflows?limit=2", ("workflows", NEXT.0, NEXT.1)).await;
    assert!(is_each_once(&workflows, 5), "{workflows:?}");
    let hook = json!({"url": "http://127.0.0.1:9/x", "events": ["*"]});
    let hook = server.post("/ojs/v1/webhooks/subscriptions", &hook).await.expect(201).json();
    let path = format!("/ojs/v1/webhooks/subscriptions/{}", hook["subscription"]["id"].as_str().unwrap());
    for _ in 0..5 {
        let tested = server.post(&format!("{path}/test"), &Value::Null).await;
        assert!(tested.status < 300, "{}", tested.text);
    }
    let path = format!("{path}/deliveries?limit=2");
    let deliveries = whole(server, &path, ("deliveries", NEXT.0, NEXT.1)).await;
    assert!(is_each_once(&deliveries, 5), "{deliveries:?}");
    let entries = whole(server, "/audit?limit=2", ("entries", "/next_before", "before")).await;
    assert!(is_each_once(&entries, 11), "{entries:?}");
    // An entry that arrives between two parts is in none of the later ones.
    let first = server.get("/audit?limit=2").await.expect(200).json();
    server.post("/keys", &json!({"name": "late", "roles": ["viewer"]})).await.expect(201);
    let second =
        server.get(&format!("/audit?limit=2&before={}", first["next_before"])).await.expect(200).json();
    let seqs: Vec<i64> = [&first, &second]
        .into_iter()
        .flat_map(|part| {
            part["entries"].as_array().unwrap().iter().map(|entry| entry["seq"].as_i64().unwrap())
        })
        .collect();
    assert_eq!(seqs, [11, 10, 9, 8]);
    for unknown in ["/ojs/v1/workflows?after=x", "/reviews?after=x"] {
        let refused = server.get(unknown).await.expect(400);
        assert!(refused.text.contains("begin the list again"), "{}", refused.text);
    }
}

on_sqlite_first!(workflows_deliveries_and_the_audit_are_read_part_by_part);

const AGENT: &str = "kind: openagentspec:v1/agent\nname: booker\ndescription: It books.\nintent: You book.\nowner: olga\n\
                     capabilities:\n  book:\n    user_identity: false\n    input_restriction:\n      require_review: ann\n";

#[tokio::test]
async fn reviews_and_dead_letters_are_read_part_by_part() {
    let books = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("book", json!({"price": 640})),
        _ => Reply::text("booked"),
    };
    let server = OjsServer::over(Fleet::builder().model(books).start().await);
    server.post_text("/agents", AGENT).await.expect(201);
    let mut jobs = Vec::new();
    for _ in 0..5 {
        let job = json!({"type": "agent.book", "args": ["it"], "meta": {"agent": "booker"},
                         "options": {"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}});
        jobs.push(server.push(&job).await);
    }
    for id in &jobs {
        server.fleet.wait_for(id, &[JobState::Pending]).await;
    }
    let reviews = whole(&server, "/reviews?per_page=2", ("items", NEXT.0, NEXT.1)).await;
    assert!(is_each_once(&reviews, 5), "{reviews:?}");
    for id in reviews.iter().map(|id| id.trim_matches('"')) {
        server.post(&format!("/reviews/{id}/reject"), &json!({"by": "ann"})).await.expect(200);
    }
    for id in &jobs {
        server.fleet.wait_for(id, &[JobState::Discarded]).await;
    }
    for (path, list) in
        [("/ojs/v1/dead-letter?limit=2", "jobs"), ("/ojs/v1/admin/dead-letter?per_page=2", "items")]
    {
        let (mut seen, mut after) = (Vec::new(), String::new());
        for _ in 0..3 {
            let part = server.get(&format!("{path}{after}")).await.expect(200).json();
            seen.extend(part[list].as_array().unwrap().iter().map(|job| job["id"].to_string()));
            after = format!("&after={}", seen.last().unwrap().trim_matches('"'));
        }
        assert!(is_each_once(&seen, 5), "{path}: {seen:?}");
    }
    server.fleet.end().await;
}
