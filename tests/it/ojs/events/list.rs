//! Pages of events.

use super::super::on_sqlite_first;
use super::{claim, complete, events, job, names, page, settle};
use reqwest::Method;
use serde_json::json;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{JobError, Phase, Settlement};
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_completed_job_has_its_events,
    a_long_result_stays_with_the_job,
    failures_and_waits_are_events,
    filters_narrow,
    pages_follow_one_another,
    a_tenant_sees_its_own,
    events_inside_a_turn_are_listed_on_request,
    invalid_queries_are_refused,
];

async fn a_completed_job_has_its_events(server: &OjsServer) {
    let id = complete(server, &job("mail"), r#"{"sent":true}"#).await;
    let page = page(server, "", 3).await;
    assert_eq!(names(&page), ["job.enqueued", "job.started", "job.completed"]);
    for event in events(&page) {
        assert_eq!((&event["specversion"], &event["subject"]), (&json!("1.0"), &json!(id)));
        assert!(event["id"].as_str().unwrap().starts_with("evt_"), "{event}");
        assert!(event["source"].as_str().unwrap().starts_with("ojs://"), "{event}");
        assert!(event["time"].as_str().unwrap().ends_with('Z'), "{event}");
        let about = [&event["data"]["job_id"], &event["data"]["job_type"], &event["data"]["queue"]];
        assert_eq!(about, [&json!(id), &json!("a.b"), &json!("mail")]);
    }
    let done = &events(&page)[2]["data"];
    assert_eq!(
        [&done["attempt"], &done["duration_ms"], &done["result"]],
        [&json!(1), &json!(250), &json!({"sent": true})]
    );
    let (cursor, last) = (page["cursor"].as_str().unwrap(), events(&page)[2]["id"].as_str().unwrap());
    assert!(cursor.starts_with(last), "{cursor} is behind {last}");
    assert_eq!(page["has_more"], false);
}

async fn a_long_result_stays_with_the_job(server: &OjsServer) {
    let long = format!("\"{}\"", "x".repeat(8 * 1024));
    complete(server, &job("q"), &long).await;
    complete(server, &job("q"), "1e400").await;
    let page = page(server, "types=job.completed", 2).await;
    let [first, second] = [0, 1].map(|at| &events(&page)[at]["data"]);
    assert_eq!((first.get("result"), &first["result_bytes"]), (None, &json!(long.len())));
    assert_eq!(second["result"].to_string(), "1e+400", "a number of any size is shown");
}

async fn failures_and_waits_are_events(server: &OjsServer) {
    let id = server.push(&job("q")).await;
    let first = claim(server).await;
    let error = JobError::new(FailureKind::Tool, "it broke");
    let run_at = server.fleet.now().plus_ms(1_000);
    settle(server, &first.lease, Settlement::Retry { error: error.clone(), run_at, delay_ms: 1_000 }).await;
    server.fleet.clock.advance_ms(1_000);
    let second = claim(server).await;
    settle(server, &second.lease, Settlement::Discard { error }).await;
    let story = page(server, &format!("subject={id}"), 8).await;
    assert_eq!(
        names(&story),
        [
            "job.enqueued",
            "job.started",
            "job.failed",
            "job.retrying",
            "job.available",
            "job.started",
            "job.failed",
            "job.discarded"
        ]
    );
}

async fn filters_narrow(server: &OjsServer) {
    let mail = complete(server, &job("mail"), "1").await;
    let other = json!({"type": "c.d", "args": [], "options": {"queue": "print"}});
    let print = complete(server, &other, "2").await;
    page(server, "", 6).await;
    for (query, expected) in [
        ("types=job.completed", vec![&mail, &print]),
        ("types=job.completed,job.enqueued&queues=print", vec![&print, &print]),
        ("types=job.comp*", vec![]),
        ("queues=mail,none&types=job.started", vec![&mail]),
        ("job_types=c.d&types=job.*", vec![&print, &print, &print]),
        ("job_types=c.d&queues=mail", vec![]),
    ] {
        let reply = server.get(&format!("/ojs/v1/events?{query}")).await;
        if query == "types=job.comp*" {
            reply.expect(400);
            continue;
        }
        let page = reply.expect(200).json();
        let subjects: Vec<&str> =
            events(&page).iter().map(|event| event["subject"].as_str().unwrap()).collect();
        assert_eq!(subjects, expected, "{query}");
    }
    let about = page(server, &format!("subject={mail}&limit=2"), 2).await;
    assert_eq!((names(&about), &about["has_more"]), (vec!["job.enqueued", "job.started"], &json!(true)));
    let after = about["cursor"].as_str().unwrap();
    let rest = page(server, &format!("subject={mail}&after={after}"), 1).await;
    assert_eq!((names(&rest), &rest["has_more"]), (vec!["job.completed"], &json!(false)));
}

async fn pages_follow_one_another(server: &OjsServer) {
    for _ in 0..5 {
        server.push(&job("q")).await;
    }
    let whole = page(server, "", 5).await;
    let (mut cursor, mut seen) = ("evt_0.0.0".to_owned(), Vec::new());
    loop {
        let part = page(server, &format!("limit=2&after={cursor}"), 0).await;
        seen.extend(events(&part).clone());
        cursor = part["cursor"].as_str().unwrap().to_owned();
        if part["has_more"] == false {
            break;
        }
    }
    assert_eq!(&seen, events(&whole));
    let nothing_yet = page(server, &format!("after={cursor}"), 0).await;
    assert_eq!((events(&nothing_yet).len(), &nothing_yet["cursor"]), (0, &json!(cursor)));
    server.push(&job("q")).await;
    assert_eq!(names(&page(server, &format!("after={cursor}"), 1).await), ["job.enqueued"]);
}

async fn a_tenant_sees_its_own(server: &OjsServer) {
    let push = async |tenant: &str| {
        let headers = [("x-ojs-tenant", tenant)];
        let reply =
            server.send(Method::POST, "/ojs/v1/jobs", &headers, job("q").to_string()).await.expect(201);
        reply.json()["job"]["id"].as_str().unwrap().to_owned()
    };
    let (alpha, beta) = (push("alpha").await, push("beta").await);
    let nobodys = server.push(&job("q")).await;
    page(server, "", 3).await;
    let seen = async |tenant: &str, query: &str| {
        let path = format!("/ojs/v1/events?{query}");
        let page = server.send(Method::GET, &path, &[("x-ojs-tenant", tenant)], "").await.expect(200).json();
        events(&page).iter().map(|event| event["subject"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(seen("alpha", "").await, std::slice::from_ref(&alpha));
    assert_eq!(seen("beta", "").await, [beta]);
    for foreign in [&alpha, &nobodys] {
        assert_eq!(seen("beta", &format!("subject={foreign}")).await, [""; 0]);
    }
}

async fn events_inside_a_turn_are_listed_on_request(server: &OjsServer) {
    use crate::conformance::jobs;
    let store = &server.fleet.store;
    let new = jobs::agent(None);
    let id = store.intake.push(vec![new]).await.unwrap().remove(0).id;
    let claimed =
        store.ledger.claim(jobs::request(turnstone_store::JobKind::Agent, 1, jobs::NOW)).await.unwrap();
    let lease = &claimed[0].lease;
    store.ledger.checkpoint(lease, jobs::done(Phase::Init), jobs::NOW, 1_000).await.unwrap();
    let quiet = page(server, "", 2).await;
    assert_eq!(names(&quiet), ["job.enqueued", "job.started"]);
    assert_eq!(names(&page(server, "types=*", 2).await), ["job.enqueued", "job.started"]);
    let requested = page(server, "types=phase.completed", 1).await;
    let event = &events(&requested)[0];
    assert_eq!((&event["subject"], &event["data"]["phase"]), (&json!(id.as_str()), &json!("init")));
    assert!(event["data"]["engagement_id"].is_string(), "{event}");
}

async fn invalid_queries_are_refused(server: &OjsServer) {
    for query in [
        "after=5",
        "after=evt_1",
        "after=evt_-1.0.0",
        "limit=0",
        "limit=1001",
        "limit=x",
        "types=JOB",
        "types=no.such.event",
        "types=job.%2A.x",
        "subject=%00",
    ] {
        let reply = server.get(&format!("/ojs/v1/events?{query}")).await.expect(400);
        assert_eq!(reply.code(), "invalid_request", "{query}");
    }
    let headers = [("accept", "text/event-stream"), ("last-event-id", "7")];
    server.send(Method::GET, "/ojs/v1/events", &headers, "").await.expect(400);
}
