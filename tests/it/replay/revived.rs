//! A job that ended with a rejection is retried: the rejection is recorded and no longer counts.

use super::{exported, imported, runs_again, trip};
use crate::stores::on_stores;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::review::ReviewState;
use turnstone_tests::{Backend, Fleet};

on_stores!(
    everywhere: [],
    sqlite_first: [
        a_rejection_is_recorded_and_does_not_count_after_a_retry,
        a_forged_approval_of_an_import_calls_nothing,
    ],
);

const AGENT: &str = "kind: \"openagentspec:v1/agent\"\nname: trip\ndescription: It books.\nintent: You book trips.\n\
                     owner: tests\ncapabilities:\n  search: {}\n  book: {user_identity: false, input_restriction: {require_review: ann}}\n";

/// Answers the one open review.
async fn answer(fleet: &Fleet, verdict: &str) {
    let open = fleet.get("/reviews?state=open").await["items"].clone();
    let id = open[0]["id"].as_str().unwrap_or_else(|| panic!("{open:#}"));
    let (status, body) = fleet.post(&format!("/reviews/{id}/{verdict}"), &json!({"by": "ann"})).await;
    assert!(status.is_success(), "{body:#}");
}

fn spent(document: &str) -> Vec<bool> {
    EngagementRecord::read(document).unwrap().reviews.iter().map(|review| review.spent).collect()
}

/// Runs a job whose first attempt ends with a rejection and whose second one with an approval. Returns its document
/// and its engagement.
async fn tried_again(from: &Fleet) -> (String, String) {
    from.register(AGENT).await;
    let job: Value = json!({"type": "agent.trip", "args": ["go"], "meta": {"agent": "trip"},
                            "options": {"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}});
    let id = from.push(&job).await;
    assert_eq!(from.settled(&id).await["state"], "pending");
    answer(from, "reject").await;
    from.wait_for(&id, &[JobState::Discarded]).await;
    let (status, body) = from.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &json!({})).await;
    assert!(status.is_success(), "{body:#}");
    from.wait_for(&id, &[JobState::Pending]).await;
    answer(from, "approve").await;
    from.wait_for(&id, &[JobState::Completed]).await;
    let engagement = from.engagement_of(&id).await;
    let document = exported(from, &engagement).await;
    (engagement, document)
}

async fn a_rejection_is_recorded_and_does_not_count_after_a_retry(backend: Backend) {
    let from = Fleet::builder().on(backend).model(trip).start().await;
    let (engagement, document) = tried_again(&from).await;
    assert_eq!(spent(&document), [true, false]);
    assert_eq!(runs_again(&document).await, (4, 28));
    let to = Fleet::builder().on(backend).workers(0).start().await;
    assert_eq!(imported(&to, &document).await.0, 201);
    let again = exported(&to, &engagement).await;
    assert_eq!(spent(&again), [true, false], "as it was there");
    assert_eq!(runs_again(&again).await, (4, 28));
    // Of two contradicting reviews the unspent one counts, in either order.
    let mut record = EngagementRecord::read(&document).unwrap();
    record.reviews.reverse();
    assert_eq!(runs_again(&record.write().unwrap()).await, (4, 28));
    from.end().await;
    to.end().await;
}

/// An imported job that is retried asks its reviewers, whatever the document says.
async fn a_forged_approval_of_an_import_calls_nothing(backend: Backend) {
    let from = Fleet::builder().on(backend).model(trip).start().await;
    from.register(AGENT).await;
    let job: Value = json!({"type": "agent.trip", "args": ["go"], "meta": {"agent": "trip"},
                            "options": {"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}});
    let id = from.push(&job).await;
    from.wait_for(&id, &[JobState::Pending]).await;
    answer(&from, "reject").await;
    from.wait_for(&id, &[JobState::Discarded]).await;
    let document = exported(&from, &from.engagement_of(&id).await).await;
    let mut record = EngagementRecord::read(&document).unwrap();
    record.reviews[0].state = ReviewState::Approved;
    let to = Fleet::builder().on(backend).model(trip).start().await;
    to.register(AGENT).await;
    assert_eq!(imported(&to, &record.write().unwrap()).await.0, 201);
    let (status, body) = to.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &json!({})).await;
    assert!(status.is_success(), "{body:#}");
    to.wait_for(&id, &[JobState::Pending]).await;
    assert_eq!(to.tools.calls_of("book"), 0);
    answer(&to, "approve").await;
    to.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(to.tools.calls_of("book"), 1);
    from.end().await;
    to.end().await;
}
