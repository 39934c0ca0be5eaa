//! Dead letters: the list, retries and deletion.

use super::super::on_sqlite_first;
use super::{dead, fail, ids, mortal};
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

async fn listed(server: &OjsServer, query: &str) -> Value {
    server.get(&format!("/ojs/v1/dead-letter{query}")).await.expect(200).json()
}

async fn only_jobs_with_the_option_are_kept(server: &OjsServer) {
    let kept = dead(server, "mail", "email.send").await;
    let dropped = server.push(&json!({"type": "email.send", "args": [], "options": {"queue": "mail"}})).await;
    fail(server, &dropped).await;
    let lapsed = mortal("mail", "email.send");
    let mut lapsed = lapsed;
    lapsed["options"]["expires_at"] = json!("+PT2S");
    let lapsed = server.push(&lapsed).await;
    server.pass_ms(3_000).await;
    assert_eq!(server.job(&lapsed).await["state"], "discarded");

    let list = listed(server, "").await;
    assert!(ids(&list["jobs"]).contains(&kept) && !ids(&list["jobs"]).contains(&dropped), "{list}");
    let job = list["jobs"].as_array().unwrap().iter().find(|job| job["id"] == kept.as_str()).unwrap();
    assert_eq!(
        (&job["state"], &job["type"], &job["queue"]),
        (&json!("discarded"), &json!("email.send"), &json!("mail"))
    );
    assert_eq!(job["errors"].as_array().unwrap().len(), 1);
    assert!(job["discarded_at"].is_string(), "{job}");
    server.get(&format!("/ojs/v1/dead-letter/{dropped}")).await.expect(404);
    assert_eq!(
        server.get(&format!("/ojs/v1/dead-letter/{kept}")).await.expect(200).json()["job"]["id"],
        kept.as_str()
    );
}

async fn a_list_is_filtered_and_cut(server: &OjsServer) {
    let mut of_mail = Vec::new();
    for _ in 0..3 {
        of_mail.push(dead(server, "mail", "email.send").await);
    }
    let other = dead(server, "video", "video.encode").await;
    assert_eq!(ids(&listed(server, "?queue=video").await["jobs"]), std::slice::from_ref(&other));
    assert_eq!(ids(&listed(server, "?type=video.encode").await["jobs"]), [other]);
    let part = listed(server, "?queue=mail&limit=2").await;
    assert_eq!(ids(&part["jobs"]), [of_mail[2].clone(), of_mail[1].clone()], "the newest come first");
    let expected = json!({"total": 3, "limit": 2, "offset": 0, "has_more": true, "next_cursor": "2"});
    assert_eq!(part["pagination"], expected);
    let rest = listed(server, "?queue=mail&limit=2&cursor=2").await;
    assert_eq!(ids(&rest["jobs"]), [of_mail[0].clone()]);
    assert_eq!(
        (&rest["pagination"]["has_more"], &rest["pagination"]["next_cursor"]),
        (&json!(false), &Value::Null)
    );
    for wrong in ["?limit=0", "?limit=101", "?offset=-1", "?since=yesterday", "?queue=a%00b"] {
        server.get(&format!("/ojs/v1/dead-letter{wrong}")).await.expect(400);
    }
    let page = server.get("/ojs/v1/admin/dead-letter?per_page=3").await.expect(200).json();
    assert_eq!(
        (ids(&page["items"]).len(), &page["pagination"]),
        (3, &json!({"total": 4, "page": 1, "per_page": 3}))
    );
    let nothing = listed(server, "?queue=none").await;
    assert_eq!((&nothing["jobs"], &nothing["pagination"]["total"]), (&json!([]), &json!(0)));
}

async fn a_retried_dead_letter_begins_again(server: &OjsServer) {
    let id = dead(server, "mail", "email.send").await;
    let reply = server.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &json!({})).await.expect(200).json();
    let job = &reply["job"];
    assert_eq!((&job["id"], &job["state"], &job["attempt"]), (&json!(id), &json!("available"), &json!(0)));
    for gone in ["error", "errors", "discarded_at", "completed_at", "started_at"] {
        assert!(job.get(gone).is_none(), "{gone} is still there: {job}");
    }
    assert_eq!((&reply["id"], &reply["state"]), (&job["id"], &job["state"]));
    assert!(listed(server, "").await["jobs"].as_array().unwrap().is_empty());
    let names = server.fleet.event_names(&id).await;
    assert_eq!(names.last().map(String::as_str), Some("job.available"), "{names:?}");
    // It is a job like any other: it can fail and be retried again.
    fail(server, &id).await;
    assert_eq!(server.job(&id).await["attempt"], 1);
    assert_eq!(server.job(&id).await["errors"].as_array().unwrap().len(), 1);
    server
        .send(reqwest::Method::POST, &format!("/ojs/v1/admin/dead-letter/{id}/retry"), &[], "")
        .await
        .expect(200);
    // A job that is no longer a dead letter cannot be retried as one.
    server.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &json!({})).await.expect(404);
}

async fn a_retry_may_change_options(server: &OjsServer) {
    let id = dead(server, "mail", "email.send").await;
    let path = format!("/ojs/v1/dead-letter/{id}/retry");
    for wrong in [
        json!({"override": {"args": []}}),
        json!({"override": {"priority": 101}}),
        json!({"override": {"queue": "No Queue"}}),
        json!({"override": 1}),
    ] {
        server.post(&path, &wrong).await.expect(400);
    }
    server.post(&path, &json!({"override": {"retry": {"max_attempts": -1}}})).await.expect(422);
    assert_eq!(server.job(&id).await["state"], "discarded", "it is unchanged");
    let anew = json!({"override": {"queue": "slow", "priority": 7, "timeout_ms": 5000, "retry": {"max_attempts": 4}}});
    let job = server.post(&path, &anew).await.expect(200).json()["job"].clone();
    assert_eq!(
        (&job["queue"], &job["priority"], &job["timeout_ms"]),
        (&json!("slow"), &json!(7), &json!(5000))
    );
    assert_eq!(job["max_attempts"], 4);
    assert_eq!(server.fleet.number("SELECT count(*) FROM queues WHERE name = 'slow'").await, 1);
}

async fn a_deleted_one_leaves_nothing(server: &OjsServer) {
    let (id, other) = (dead(server, "mail", "email.send").await, dead(server, "mail", "email.send").await);
    let reply = server.delete(&format!("/ojs/v1/dead-letter/{id}")).await.expect(200).json();
    assert_eq!((&reply["deleted"], &reply["job_id"]), (&json!(true), &json!(id)));
    server.get(&format!("/ojs/v1/jobs/{id}")).await.expect(404);
    server.delete(&format!("/ojs/v1/dead-letter/{id}")).await.expect(404);
    let reply = server.delete(&format!("/ojs/v1/admin/dead-letter/{other}")).await.expect(204);
    assert_eq!(reply.text, "");
    for table in ["jobs", "job_envelopes", "job_errors", "journal"] {
        assert_eq!(server.fleet.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    // A job that has not failed finally is no dead letter.
    let alive = server.push(&mortal("mail", "email.send")).await;
    server.delete(&format!("/ojs/v1/dead-letter/{alive}")).await.expect(404);
    assert_eq!(server.job(&alive).await["state"], "available");
}

async fn they_are_counted(server: &OjsServer) {
    let stats = server.get("/ojs/v1/admin/dead-letter/stats").await.expect(200).json();
    assert_eq!((&stats["total"], &stats["oldest_at"]), (&json!(0), &Value::Null));
    for (queue, job_type) in [("mail", "email.send"), ("mail", "email.digest"), ("video", "video.encode")] {
        dead(server, queue, job_type).await;
    }
    let stats = server.get("/ojs/v1/admin/dead-letter/stats").await.expect(200).json();
    assert_eq!(stats["total"], 3);
    assert_eq!(stats["by_queue"], json!({"mail": 2, "video": 1}));
    assert_eq!(stats["by_type"], json!({"email.digest": 1, "email.send": 1, "video.encode": 1}));
    assert!(stats["oldest_at"].is_string() && stats["newest_at"].is_string(), "{stats}");
}

async fn all_matches_of_a_filter_are_retried_or_deleted(server: &OjsServer) {
    for _ in 0..3 {
        dead(server, "mail", "email.send").await;
    }
    let video = dead(server, "video", "video.encode").await;
    let filter = json!({"queue": "mail"});
    server.post("/ojs/v1/dead-letter/retry", &json!({"filter": filter})).await.expect(400);
    let looked = json!({"filter": filter, "confirm": true, "dry_run": true});
    let reply = server.post("/ojs/v1/dead-letter/retry", &looked).await.expect(200).json();
    assert_eq!((&reply["matched"], &reply["succeeded"], ids_of(&reply)), (&json!(3), &json!(0), 3));
    assert_eq!(listed(server, "").await["pagination"]["total"], 4);
    let reply = server
        .post("/ojs/v1/dead-letter/retry", &json!({"filter": filter, "confirm": true}))
        .await
        .expect(200);
    assert_eq!((&reply.json()["action"], &reply.json()["succeeded"]), (&json!("retry"), &json!(3)));
    assert_eq!(listed(server, "").await["pagination"]["total"], 1);
    let reply = server.post("/ojs/v1/dead-letter/purge", &json!({"confirm": true})).await.expect(200).json();
    assert_eq!(
        (&reply["action"], &reply["succeeded"], &reply["failed"]),
        (&json!("delete"), &json!(1), &json!(0))
    );
    server.get(&format!("/ojs/v1/jobs/{video}")).await.expect(404);
    assert_eq!(server.stored_jobs().await, 3, "those that wait stay");
    server
        .post("/ojs/v1/dead-letter/purge", &json!({"confirm": true, "filter": {"state": "active"}}))
        .await
        .expect(400);
}

fn ids_of(reply: &Value) -> usize {
    reply["ids"].as_array().unwrap().len()
}

/// OJS unique jobs §3, OJS dead letter §4.3.
async fn a_dead_letter_is_not_retried_beside_its_duplicate(server: &OjsServer) {
    let mut job = mortal("mail", "email.digest");
    job["options"]["unique"] = json!({"keys": ["type"]});
    let first = server.push(&job).await;
    fail(server, &first).await;
    let second = server.push(&job).await;
    let path = format!("/ojs/v1/dead-letter/{first}/retry");
    let refused = server.post(&path, &json!({})).await.expect(409);
    assert_eq!(
        (refused.code().as_str(), &refused.json()["error"]["details"]["existing_job_id"]),
        ("duplicate", &json!(second))
    );
    server.post(&format!("/ojs/v1/admin/jobs/{first}/retry"), &json!({})).await.expect(409);
    assert_eq!(server.job(&first).await["state"], "discarded");
    fail(server, &second).await;
    let both = server.post("/ojs/v1/dead-letter/retry", &json!({"confirm": true})).await.expect(200).json();
    assert_eq!((&both["succeeded"], &both["failed"]), (&json!(1), &json!(1)), "one of two that are alike");
    let states = [server.job(&first).await["state"].clone(), server.job(&second).await["state"].clone()];
    assert!(states.contains(&json!("available")) && states.contains(&json!("discarded")), "{states:?}");
}

on_sqlite_first![
    only_jobs_with_the_option_are_kept,
    a_list_is_filtered_and_cut,
    a_retried_dead_letter_begins_again,
    a_retry_may_change_options,
    a_deleted_one_leaves_nothing,
    they_are_counted,
    all_matches_of_a_filter_are_retried_or_deleted,
    a_dead_letter_is_not_retried_beside_its_duplicate,
];
