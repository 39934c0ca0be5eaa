//! `POST /ojs/v1/jobs/batch`: all or nothing, in order, with the member's own error.

use super::on_every_store;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_every_store![
    a_batch_is_answered_in_its_order_with_whole_jobs,
    a_thousand_jobs_are_one_batch_and_more_are_not,
    one_invalid_member_refuses_the_batch_and_is_named,
    a_member_that_is_taken_or_not_unique_is_named,
    an_agent_that_many_members_name_is_found,
    a_member_that_a_later_one_replaces_is_cancelled,
];

const PATH: &str = "/ojs/v1/jobs/batch";

fn job(n: usize) -> Value {
    json!({"type": "mail.send", "args": [n], "options": {"queue": "mail"}})
}

async fn a_batch_is_answered_in_its_order_with_whole_jobs(server: &OjsServer) {
    let late = json!({"type": "mail.late", "args": [], "options": {"delay_until": "+PT5S"}, "x_note": 1.50});
    let reply = server.post(PATH, &json!({"jobs": [job(0), late, job(2)]})).await.expect(201).json();
    assert_eq!(reply["count"], 3);
    let jobs = reply["jobs"].as_array().unwrap();
    assert_eq!(
        jobs.iter().map(|job| job["state"].clone()).collect::<Vec<_>>(),
        ["available", "scheduled", "available"]
    );
    assert_eq!(
        (&jobs[0]["args"], &jobs[2]["args"], &jobs[1]["x_note"]),
        (&json!([0]), &json!([2]), &json!(1.5))
    );
    for job in jobs {
        assert_eq!(&server.job(job["id"].as_str().unwrap()).await, job);
    }
    let fetched = json!({"queues": ["mail"], "count": 5});
    let fetched = server.post("/ojs/v1/workers/fetch", &fetched).await.expect(200).json();
    let args: Vec<_> = fetched["jobs"].as_array().unwrap().iter().map(|job| job["args"][0].clone()).collect();
    assert_eq!(args, [0, 2], "first in, first out");
}

async fn a_thousand_jobs_are_one_batch_and_more_are_not(server: &OjsServer) {
    let many: Vec<Value> = (0..1001).map(job).collect();
    let refused = server.post(PATH, &json!({"jobs": many})).await.expect(400);
    assert_eq!((refused.code().as_str(), server.stored_jobs().await), ("invalid_request", 0));
    let reply = server.post(PATH, &json!({"jobs": many[1..]})).await.expect(201).json();
    assert_eq!((&reply["count"], server.stored_jobs().await), (&json!(1000), 1000));
    for body in [json!({"jobs": []}), json!({}), json!({"jobs": {}}), json!({"jobs": [3]})] {
        assert_eq!(server.post(PATH, &body).await.expect(400).code(), "invalid_request", "{body}");
    }
    assert_eq!(server.post_text(PATH, "[]").await.expect(400).code(), "invalid_payload");
}

async fn one_invalid_member_refuses_the_batch_and_is_named(server: &OjsServer) {
    for (wrong, status) in [
        (json!({"type": "Mail", "args": []}), 400),
        (json!({"type": "mail", "args": {}}), 400),
        (json!({"type": "mail", "args": [], "options": {"retry": {"max_attempts": -1}}}), 422),
        (json!({"type": "mail", "args": [], "meta": {"agent": "nobody"}}), 400),
    ] {
        let refused =
            server.post(PATH, &json!({"jobs": [job(0), job(1), wrong]})).await.expect(status).json();
        assert_eq!(refused["error"]["details"]["index"], 2, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("index 2"), "{refused}");
    }
    assert_eq!(server.stored_jobs().await, 0);
}

async fn a_member_that_is_taken_or_not_unique_is_named(server: &OjsServer) {
    let unique = json!({"type": "report", "args": [], "options": {"unique": {"keys": ["type"]}}});
    let taken = server.push(&unique).await;
    let again = json!({"type": "mail", "args": [], "id": taken});
    for wrong in [again, unique.clone()] {
        let refused = server.post(PATH, &json!({"jobs": [job(0), wrong]})).await.expect(409).json();
        let details = &refused["error"]["details"];
        assert_eq!((&details["index"], &details["existing_job_id"]), (&json!(1), &json!(taken)), "{refused}");
        assert_eq!(refused["error"]["code"], "duplicate");
    }
    assert_eq!(server.stored_jobs().await, 1);
    let mut ignored = unique;
    ignored["options"]["unique"]["on_conflict"] = "ignore".into();
    let reply = server.post(PATH, &json!({"jobs": [ignored, job(1)]})).await.expect(201).json();
    assert_eq!((&reply["jobs"][0]["id"], server.stored_jobs().await), (&json!(taken), 2));
}

async fn an_agent_that_many_members_name_is_found(server: &OjsServer) {
    let agent =
        json!({"type": "ai.ask", "args": ["?"], "ext_agent_model": "m", "ext_agent_token_budget": 10});
    let reply = server.post(PATH, &json!({"jobs": [agent, job(1), agent]})).await.expect(201).json();
    assert_eq!(reply["jobs"][2]["ext_agent_token_budget"], 10);
    assert_eq!(server.fleet.number("SELECT count(*) FROM engagements").await, 2);
}

async fn a_member_that_a_later_one_replaces_is_cancelled(server: &OjsServer) {
    let unique = json!({"keys": ["type"], "on_conflict": "replace"});
    let job = |n: usize| json!({"type": "mail.digest", "args": [n], "options": {"unique": unique}});
    let reply = server.post(PATH, &json!({"jobs": [job(0), job(1)]})).await.expect(201).json();
    let states: Vec<_> = reply["jobs"].as_array().unwrap().iter().map(|job| job["state"].clone()).collect();
    assert_eq!(states, ["cancelled", "available"]);
    for job in reply["jobs"].as_array().unwrap() {
        assert_eq!(&server.job(job["id"].as_str().unwrap()).await, job);
    }
}
