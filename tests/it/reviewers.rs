//! Groups of reviewers, from outside: quorum, reminders, escalation, and the directory of users, on both databases
//! and across killed processes.

use crate::review::review_of;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_scheduler::SchedulerOptions;
use turnstone_tests::model_server::booking;
use turnstone_tests::{Backend, Fleet};

const AGENT: &str = r#"
kind: "openagentspec:v1/agent"
name: booker
description: An agent that books.
intent: You book what you are asked to book.
owner: olga
capabilities:
  book:
    user_identity: false
    input_restriction:
      require_review: board
"#;

/// Two of three, then the owner of the agent.
fn rules() -> Value {
    json!({"users": ["ann", "ben", "cem", "olga"], "groups": {"board": {
        "members": ["ann", "ben", "cem"], "quorum": 2, "remind_every_ms": 10_000, "answer_within_ms": 60_000,
        "escalate_to": "owner"}}})
}

async fn parked(backend: Backend) -> (Fleet, String) {
    let fleet = Fleet::builder().on(backend).model(booking).reviews(rules()).start().await;
    fleet.register(AGENT).await;
    let job = json!({"type": "agent.book", "args": ["book it"], "meta": {"agent": "booker"}});
    let id = fleet.push(&job).await;
    assert_eq!(fleet.settled(&id).await["state"], "pending");
    (fleet, id)
}

async fn answer(fleet: &Fleet, review: &Value, verb: &str, by: &str) -> (StatusCode, Value) {
    let path = format!("/reviews/{}/{verb}", review["id"].as_str().unwrap());
    fleet.post(&path, &json!({"by": by, "reason": format!("{by} thinks so")})).await
}

/// OAS-31, OAS-32: the inbox has the reviewers and the votes. Two of three approvals allow the call; the deciding
/// vote may come after the processes that opened the review are dead.
#[tokio::test]
async fn two_of_three_agree_across_a_killed_process() {
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).workers(0).model(booking).start().await;
        fleet.register(AGENT.replace("board", "ann")).await;
        let job = json!({"type": "agent.book", "args": ["book it"], "meta": {"agent": "booker"}});
        let id = fleet.push(&job).await;
        let mut asking = crate::crash::spawn(&fleet, 1, None);
        assert_eq!(fleet.wait_for(&id, &[JobState::Pending]).await["state"], "pending");
        asking.kill().await.unwrap();
        let review = review_of(&fleet).await;
        assert_eq!(answer(&fleet, &review, "approve", "ben").await.0, StatusCode::FORBIDDEN);
        assert_eq!(answer(&fleet, &review, "approve", "ann").await.0, StatusCode::OK);
        assert!(fleet.tools.calls().is_empty(), "no worker runs");
        let other = crate::crash::spawn(&fleet, 1, None);
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        drop(other);
        assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("booked")), "{done:#}");
        assert_eq!((fleet.tools.calls().len(), fleet.models.calls().len()), (1, 2));
        fleet.end().await;
    }
}

/// OAS-32: each reviewer has one vote, and others have none.
#[tokio::test]
async fn two_of_three_agree() {
    for backend in Backend::ALL {
        let (mut fleet, id) = parked(backend).await;
        let review = review_of(&fleet).await;
        assert_eq!(review["members"], json!(["ann", "ben", "cem"]));
        assert_eq!(review["quorum"], json!({"needed": 2, "of": 3, "approvals": 0, "rejections": 0}));
        assert_eq!((&review["reviewer"], &review["escalates_to"]), (&json!("board"), &json!("olga")));
        let (status, open) = answer(&fleet, &review, "approve", "ann").await;
        assert_eq!((status, &open["state"]), (StatusCode::OK, &json!("open")), "{open:#}");
        assert_eq!(open["votes"][0]["reason"], "ann thinks so");
        assert_eq!(answer(&fleet, &review, "approve", "ann").await.0, StatusCode::CONFLICT);
        for stranger in ["olga", "mallory", "board"] {
            assert_eq!(answer(&fleet, &review, "approve", stranger).await.0, StatusCode::FORBIDDEN);
        }
        assert_eq!(fleet.get("/reviews?reviewer=cem").await["items"][0]["id"], review["id"]);
        assert!(fleet.tools.calls().is_empty());
        fleet.stop_workers().await;
        assert_eq!(answer(&fleet, &review, "reject", "ben").await.1["state"], "open");
        assert_eq!(answer(&fleet, &review, "approve", "cem").await.1["state"], "approved");
        fleet.add_worker(4);
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["result"], "booked", "{done:#}");
        let engagement = fleet.engagement_of(&id).await;
        let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
        let votes: Vec<(&Value, &Value)> = audit["reviews"][0]["votes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|vote| (&vote["by"], &vote["approve"]))
            .collect();
        assert_eq!(
            votes,
            [(&json!("ann"), &json!(true)), (&json!("ben"), &json!(false)), (&json!("cem"), &json!(true))]
        );
        fleet.end().await;
    }
}

/// OAS-32: the engagement ends as soon as two approvals are impossible.
#[tokio::test]
async fn two_of_three_disagree() {
    let (fleet, id) = parked(Backend::Sqlite).await;
    let review = review_of(&fleet).await;
    answer(&fleet, &review, "reject", "ann").await;
    assert_eq!(answer(&fleet, &review, "reject", "ben").await.1["state"], "rejected");
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["error"]["details"]["oas_rule"], "OAS-32", "{done:#}");
    assert!(fleet.tools.calls().is_empty());
    fleet.end().await;
}

/// Two schedulers remind once per interval. Silence escalates to the owner, who alone may answer then; further
/// silence rejects.
#[tokio::test]
async fn silence_is_reminded_and_then_escalates() {
    for (answered, state) in [(true, "completed"), (false, "discarded")] {
        let (fleet, id) = parked(Backend::Sqlite).await;
        let schedulers = ["one", "other"].map(|holder| fleet.scheduler(SchedulerOptions::new(holder)));
        for _ in 0..6 {
            fleet.clock.advance_ms(10_000);
            for scheduler in &schedulers {
                scheduler.tick().await.unwrap();
            }
        }
        let names = fleet.event_names(&id).await;
        let times = |name: &str| names.iter().filter(|seen| *seen == name).count();
        assert_eq!((times("review.reminded"), times("review.escalated")), (5, 1), "{names:?}");
        let review = review_of(&fleet).await;
        assert_eq!((&review["reviewer"], &review["members"]), (&json!("olga"), &json!(["olga"])));
        assert_eq!((&review["step"], &review["reminders"]), (&json!(1), &json!(5)));
        assert_eq!(answer(&fleet, &review, "approve", "ann").await.0, StatusCode::FORBIDDEN);
        if answered {
            assert_eq!(answer(&fleet, &review, "approve", "olga").await.0, StatusCode::OK);
        } else {
            fleet.clock.advance_ms(60_000);
            for scheduler in &schedulers {
                scheduler.tick().await.unwrap();
            }
        }
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["state"], state, "{done:#}");
        assert_eq!(fleet.tools.calls().len(), usize::from(answered));
        fleet.end().await;
    }
}

/// OAS-30: with a directory of users, a reviewer who is not in it is refused when the document is registered, and
/// nothing is registered in part.
#[tokio::test]
async fn a_reviewer_who_is_not_in_the_directory_is_refused() {
    let fleet = Fleet::builder().reviews(rules()).start().await;
    let (status, refusal) = fleet.send(Method::POST, "/agents", AGENT.replace("board", "bn")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refusal:#}");
    assert!(refusal.to_string().contains("OAS-30"), "{refusal:#}");
    assert_eq!(fleet.send(Method::GET, "/agents/booker", "").await.0, StatusCode::NOT_FOUND);
    for known in ["board", "ben", "owner", "user"] {
        fleet.register(AGENT.replace("board", known)).await;
    }
    fleet.end().await;
}

/// OAS-32: an approval applies to its arguments; it does not confirm a call with others.
#[tokio::test]
async fn an_approval_of_other_arguments_confirms_nothing() {
    for backend in Backend::ALL {
        let mut fleet = Fleet::builder().on(backend).model(booking).start().await;
        fleet.register(AGENT.replace("board", "ann")).await;
        let job = json!({"type": "agent.book", "args": ["book it"], "meta": {"agent": "booker"}});
        let id = fleet.push(&job).await;
        fleet.settled(&id).await;
        let first = review_of(&fleet).await;
        fleet.stop_workers().await;
        assert_eq!(answer(&fleet, &first, "approve", "ann").await.0, StatusCode::OK);
        fleet.place.change("UPDATE reviews SET arguments_hash = 'of other arguments'").await;
        fleet.add_worker(1);
        fleet.wait_for(&id, &[JobState::Pending]).await;
        assert!(fleet.tools.calls().is_empty());
        let again = review_of(&fleet).await;
        assert_ne!(again["id"], first["id"]);
        assert_eq!(
            answer(&fleet, &first, "approve", "ann").await.0,
            StatusCode::CONFLICT,
            "a replayed answer"
        );
        assert_eq!(answer(&fleet, &again, "approve", "ann").await.0, StatusCode::OK);
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("completed"), 1), "{done:#}");
        fleet.end().await;
    }
}

/// OAS-32: one person as several members of a group is no quorum: the review escalates, and without a next step
/// nothing is approved.
#[tokio::test]
async fn one_person_is_no_quorum_of_two() {
    for backend in Backend::ALL {
        for next in [Some("ann"), None] {
            let mut board = json!({"members": ["owner", "olga"], "quorum": 2, "answer_within_ms": 60_000});
            if let Some(next) = next {
                board["escalate_to"] = json!(next);
            }
            let rules = json!({"users": ["ann", "olga"], "groups": {"board": board}});
            let fleet = Fleet::builder().on(backend).model(booking).reviews(rules).start().await;
            fleet.register(AGENT).await;
            let job = json!({"type": "agent.book", "args": ["book it"], "meta": {"agent": "booker"}});
            let id = fleet.push(&job).await;
            if next.is_some() {
                assert_eq!(fleet.settled(&id).await["state"], "pending");
                let review = review_of(&fleet).await;
                assert_eq!(review["members"], json!(["ann"]), "{review:#}");
                let (status, answered) = answer(&fleet, &review, "approve", "ann").await;
                assert_eq!(status, StatusCode::OK, "{answered:#}");
                assert_eq!(answered["reason"], "ann thinks so", "{answered:#}");
            }
            let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
            // Without other reviewers the call is not made, and no review is opened.
            assert_eq!(fleet.tools.calls().len(), usize::from(next.is_some()), "{done:#}");
            let requested = fleet.get("/reviews").await;
            assert_eq!(
                requested["items"].as_array().map(Vec::len),
                Some(usize::from(next.is_some())),
                "{requested:#}"
            );
            fleet.end().await;
        }
    }
}
