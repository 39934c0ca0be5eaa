//! The duties of the scheduler, with one and with several schedulers.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::{JobState, Timestamp};
use turnstone_scheduler::SchedulerOptions;
use turnstone_store::{ClaimRequest, JobKind};
use turnstone_tests::{Fleet, Reply, model_server};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// An agent with a review before it books.
const AGENT: &str = r#"
kind: "openagentspec:v1/agent"
name: booker
description: An agent that books.
intent: You book what you are asked to book.
owner: tests
capabilities:
  book:
    user_identity: false
    input_restriction:
      assertion: recent["book"].inputs.price <= 800
      require_review: manager
"#;

/// The tables with rows of a job or an engagement.
const TABLES: [&str; 9] = [
    "jobs",
    "job_envelopes",
    "job_results",
    "job_errors",
    "engagements",
    "totals",
    "journal",
    "tool_calls",
    "reviews",
];

async fn count(fleet: &Fleet, table: &str) -> i64 {
    fleet.number(&format!("SELECT count(*) FROM {table}")).await
}

async fn status(fleet: &Fleet, path: &str) -> StatusCode {
    fleet.send(Method::GET, path, "").await.0
}

fn plain(options: &Value) -> Value {
    json!({"type": "email.send", "args": ["a@example.org"], "queue": "mail", "options": options})
}

/// Ends one job of each kind: an agent job with a tool and a review, one that fails, and a plain one that is
/// cancelled.
async fn ended(fleet: &Fleet) -> [String; 3] {
    fleet.register(AGENT).await;
    let book = json!({"type": "agent.book", "args": ["book it"], "meta": {"agent": "booker"}});
    let booked = fleet.push(&book).await;
    assert_eq!(fleet.settled(&booked).await["state"], "pending");
    let reviews = fleet.get("/reviews?state=open").await;
    let review = reviews["items"][0]["id"].as_str().unwrap().to_owned();
    let (answered, body) = fleet.post(&format!("/reviews/{review}/approve"), &json!({"by": "manager"})).await;
    assert_eq!(answered, StatusCode::OK, "{body}");
    fleet.wait_for(&booked, &[JobState::Completed]).await;
    let broken = json!({
        "type": "agent.x", "args": ["hi"], "ext_agent_model": "broken", "options": {"retry": {"max_attempts": 1}},
    });
    let broken = fleet.push(&broken).await;
    fleet.wait_for(&broken, &[JobState::Discarded]).await;
    let cancelled = fleet.push(&plain(&json!({}))).await;
    assert_eq!(fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{cancelled}"), "").await.0, StatusCode::OK);
    [booked, broken, cancelled]
}

fn script(request: &Value) -> Reply {
    match (request["model"].as_str(), model_server::outcomes(request)) {
        (Some("broken"), _) => Reply::Status(503),
        (_, 0) => Reply::call("book", json!({"price": 640})),
        _ => Reply::text("booked"),
    }
}

#[tokio::test]
async fn ended_jobs_are_counted_once_and_deleted_after_their_retention() {
    let fleet = Fleet::builder().model(script).start().await;
    let began = fleet.now();
    let [booked, broken, cancelled] = ended(&fleet).await;
    let engagement = fleet.engagement_of(&booked).await;
    let tokens = fleet.job(&booked).await["ext_agent_tokens_used"].as_i64().unwrap();
    let living = fleet.push(&plain(&json!({"delay_until": "+PT2000H"}))).await;
    for table in TABLES {
        assert!(count(&fleet, table).await > 0, "{table} has no row, so a deletion cannot be seen");
    }

    fleet.tick().await;
    assert_eq!(fleet.store.views.statistics(Timestamp(0)).await.unwrap(), [], "two minutes may still change");
    fleet.clock.advance_ms(DAY_MS);
    for _ in 0..2 {
        fleet.tick().await;
        let hours = fleet.store.views.statistics(Timestamp(0)).await.unwrap();
        let mut counted: Vec<_> = hours.iter().map(|h| (h.queue.as_str(), h.state, h.jobs)).collect();
        counted.sort_unstable_by_key(|(queue, state, _)| (*queue, state.as_str()));
        assert_eq!(
            counted,
            [
                ("default", JobState::Completed, 1),
                ("default", JobState::Discarded, 1),
                ("mail", JobState::Cancelled, 1)
            ]
        );
        assert!(hours.iter().all(|hour| hour.hour.0 == began.0 - began.0 % 3_600_000));
        let completed = hours.iter().find(|hour| hour.state == JobState::Completed).unwrap();
        assert_eq!(completed.tokens, tokens);
    }
    assert_eq!(status(&fleet, &format!("/engagements/{engagement}")).await, StatusCode::OK);

    fleet.clock.advance_ms(30 * DAY_MS);
    let fresh = fleet.push(&plain(&json!({}))).await;
    assert_eq!(fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{fresh}"), "").await.0, StatusCode::OK);
    fleet.tick().await;
    for job in [&booked, &broken, &cancelled] {
        assert_eq!(status(&fleet, &format!("/ojs/v1/jobs/{job}")).await, StatusCode::NOT_FOUND);
    }
    for path in ["", "/events", "/messages", "/checkpoints", "/audit"] {
        let path = format!("/engagements/{engagement}{path}");
        assert_eq!(status(&fleet, &path).await, StatusCode::NOT_FOUND, "{path}");
    }
    for table in TABLES {
        let kept = match table {
            "jobs" | "job_envelopes" => 2,
            "journal" => continue,
            _ => 0,
        };
        assert_eq!(count(&fleet, table).await, kept, "{table}");
    }
    assert_eq!(fleet.event_names(&living).await, ["job.enqueued", "job.scheduled"]);
    assert_eq!(fleet.event_names(&fresh).await, ["job.enqueued", "job.cancelled"]);
    let of_the_living =
        "journal WHERE names NOT IN ('job.enqueued,job.scheduled', 'job.enqueued', 'job.cancelled')";
    assert_eq!(count(&fleet, of_the_living).await, 0, "events of a deleted job are left");
    fleet.clock.advance_ms(DAY_MS);
    fleet.tick().await;
    let hours = fleet.store.views.statistics(Timestamp(0)).await.unwrap();
    assert_eq!(hours.iter().map(|hour| hour.jobs).sum::<i64>(), 4, "deleted jobs stay counted");
    fleet.end().await;
}

#[tokio::test]
async fn an_attempt_that_outlasts_its_timeout_is_ended_although_its_worker_keeps_the_lease() {
    let fleet = Fleet::builder().workers(0).start().await;
    let id = fleet.push(&plain(&json!({"timeout_ms": 1_000, "retry": {"max_attempts": 1}}))).await;
    let request = ClaimRequest {
        kind: JobKind::Plain,
        queues: vec!["mail".to_owned()],
        limit: 1,
        worker_id: "stuck".to_owned(),
        lease_ms: DAY_MS,
        tenant: None,
        runtime_tags: None,
        now: fleet.now(),
    };
    assert_eq!(fleet.store.ledger.claim(request).await.unwrap().len(), 1);
    fleet.clock.advance_ms(999);
    fleet.tick().await;
    assert_eq!(fleet.job(&id).await["state"], "active", "a millisecond is left");
    fleet.clock.advance_ms(1);
    fleet.tick().await;
    let job = fleet.job(&id).await;
    assert_eq!((&job["state"], &job["error"]["code"]), (&json!("discarded"), &json!("TIMEOUT")), "{job:#}");
    fleet.end().await;
}

#[tokio::test]
async fn of_two_schedulers_only_the_leader_acts() {
    let fleet = Fleet::builder().workers(0).start().await;
    let [one, other] = ["one", "other"].map(|holder| fleet.scheduler(SchedulerOptions::new(holder)));
    assert_eq!(one.tick().await.unwrap(), 0);
    let id = fleet.push(&plain(&json!({"delay_until": "+PT1S"}))).await;
    fleet.clock.advance_ms(1_199);
    assert_eq!(other.tick().await.unwrap(), 0, "the term of the other one has a millisecond left");
    assert_eq!(fleet.job(&id).await["state"], "scheduled");
    fleet.clock.advance_ms(1);
    assert_eq!(other.tick().await.unwrap(), 1);
    assert_eq!(fleet.job(&id).await["state"], "available");
    fleet.push(&plain(&json!({"delay_until": "+PT1S"}))).await;
    fleet.clock.advance_ms(1_000);
    assert_eq!(one.tick().await.unwrap(), 0, "it leads no longer");
    assert_eq!(other.tick().await.unwrap(), 1);
    fleet.end().await;
}
