//! Several reviewers: each has one vote, is reminded once per interval, and silence escalates to the next step.

use super::backend::Opened;
use super::jobs::{NOW, complete, question};
use super::on_every_store;
use serde_json::json;
use turnstone_domain::agent::delegation::DelegationMode;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::review::{NewReview, Review, ReviewPlan, ReviewState, ReviewStep};
use turnstone_domain::{
    AgentDefinition, EngagementId, EventName, Ids, JobId, JobState, NewChild, RawJson, RawObject, ReviewId,
    Settlement, Timestamp, Wait,
};
use turnstone_store::{Claim, Decision, DecisionOutcome, Duty, JobKind, Page, ReviewFilter};

on_every_store![
    a_quorum_approves,
    a_quorum_that_cannot_be_reached_rejects,
    of_concurrent_votes_each_counts_once,
    reminders_come_once_per_interval,
    silence_escalates_and_finally_rejects,
    an_answer_after_the_deadline_belongs_to_the_next_step,
    an_agent_is_in_the_inbox_until_its_engagement_ends,
    a_reviewer_without_room_in_the_tree_approves_nothing,
];

fn step(name: &str, members: &[&str], quorum: usize) -> ReviewStep {
    ReviewStep {
        name: name.into(),
        members: members.iter().map(|&member| member.to_owned()).collect(),
        quorum,
        remind_every_ms: Some(10),
        answer_within_ms: Some(100),
    }
}

/// Parks a job that waits for two of three reviewers, and after 100 ms for eve, for 100 ms as well.
async fn parked(at: &Opened) -> (Claim, ReviewId) {
    let held = at.held(Some(100)).await;
    let plan = ReviewPlan { steps: vec![step("board", &["ann", "ben", "cem"], 2), step("eve", &["eve"], 1)] };
    let review = NewReview { reviewer: "board".into(), plan, ..question(Some(NOW.plus_ms(100))) };
    let id = review.id.clone();
    at.settle(&held.lease, Settlement::Park { wait: Wait::Review(review) }).await;
    (held, id)
}

async fn vote(at: &Opened, id: &ReviewId, by: &str, approve: bool, when: Timestamp) -> DecisionOutcome {
    let decision = Decision {
        approve,
        by: by.into(),
        principal: None,
        reason: Some(format!("{by} thinks so")),
        reported: None,
        at: when,
    };
    at.store.intake.decide_review(id, decision).await.unwrap()
}

async fn review(at: &Opened, id: &ReviewId) -> Review {
    at.store.views.review(id).await.unwrap().unwrap()
}

async fn count(at: &Opened, job: &JobId, name: EventName) -> usize {
    at.events(job).await.into_iter().filter(|seen| *seen == name).count()
}

/// OAS-32: two of three approve. A vote of a stranger and a second vote of the same reviewer change nothing.
async fn a_quorum_approves(at: &Opened) {
    let (held, id) = parked(at).await;
    let first = vote(at, &id, "ben", true, NOW).await;
    let DecisionOutcome::Counted(open) = first else { panic!("{first:?}") };
    assert_eq!(
        (open.state, open.tally().approvals, open.missing()),
        (ReviewState::Open, 1, vec!["ann", "cem"])
    );
    assert_eq!(at.state(&held.job).await, JobState::Pending);
    assert_eq!(vote(at, &id, "ben", false, NOW).await, DecisionOutcome::VotedAlready);
    assert!(matches!(vote(at, &id, "eve", true, NOW).await, DecisionOutcome::NotAsked(_)));
    assert_eq!(inbox(at, "cem").await, [review(at, &id).await]);
    for other in ["ce", "eve", "ann\nben"] {
        assert_eq!(inbox(at, other).await, []);
    }
    assert!(matches!(vote(at, &id, "ann", true, NOW).await, DecisionOutcome::Decided(_)));
    and_is_over(at, &held.job, &id).await;
}

async fn inbox(at: &Opened, reviewer: &str) -> Vec<Review> {
    let requested = ReviewFilter { reviewer: Some(reviewer.into()), ..ReviewFilter::default() };
    at.store.views.reviews(&requested, Page { limit: 10, offset: 0 }).await.unwrap()
}

/// Asserts that after two approvals a later vote is recorded and changes nothing.
async fn and_is_over(at: &Opened, job: &JobId, id: &ReviewId) {
    let decided = review(at, id).await;
    assert_eq!((decided.state, decided.votes.len()), (ReviewState::Approved, 2));
    assert_eq!(decided.votes[0].reason.as_deref(), Some("ben thinks so"));
    assert_eq!(vote(at, id, "cem", false, NOW).await, DecisionOutcome::TooLate(ReviewState::Approved));
    assert_eq!(review(at, id).await, decided);
    use EventName::{JobAvailable, ReviewAnsweredLate, ReviewDecided, ReviewVoted};
    let reported = [ReviewVoted, ReviewVoted, ReviewDecided, JobAvailable, ReviewAnsweredLate];
    assert_eq!(at.events(job).await[4..], reported);
    let recalled = at.store.ledger.reads().recall(job, 1, 10, true).await.unwrap();
    assert_eq!(recalled.reviews[0].state, ReviewState::Approved);
}

async fn a_quorum_that_cannot_be_reached_rejects(at: &Opened) {
    let (held, id) = parked(at).await;
    assert!(matches!(vote(at, &id, "ann", false, NOW).await, DecisionOutcome::Counted(_)));
    let second = vote(at, &id, "cem", false, NOW).await;
    let DecisionOutcome::Decided(decided) = second else { panic!("{second:?}") };
    assert_eq!((decided.state, decided.decided_by.as_deref()), (ReviewState::Rejected, Some("cem")));
    assert_eq!(at.state(&held.job).await, JobState::Available);
}

async fn of_concurrent_votes_each_counts_once(at: &Opened) {
    for _ in 0..5 {
        let (held, id) = parked(at).await;
        let votes = ["ann", "ann", "ben", "cem", "ben"].map(|by| vote(at, &id, by, true, NOW));
        let outcomes = futures::future::join_all(votes).await;
        let counted =
            outcomes.iter().filter(|outcome| matches!(outcome, DecisionOutcome::Counted(_))).count();
        let decided =
            outcomes.iter().filter(|outcome| matches!(outcome, DecisionOutcome::Decided(_))).count();
        assert_eq!((counted, decided), (1, 1), "{outcomes:?}");
        assert_eq!(review(at, &id).await.votes.len(), 2);
        assert_eq!(count(at, &held.job, EventName::ReviewVoted).await, 2);
        at.store.intake.cancel(&held.job, NOW).await.unwrap();
    }
}

async fn reminders_come_once_per_interval(at: &Opened) {
    let (held, id) = parked(at).await;
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(NOW.plus_ms(10)));
    for (ms, reminded) in [(9, 0), (10, 1), (10, 0), (19, 0), (20, 1), (57, 1), (57, 0), (59, 0), (60, 1)] {
        assert_eq!(at.perform(Duty::RemindReviews, NOW.plus_ms(ms)).await, reminded, "at {ms} ms");
    }
    assert_eq!(count(at, &held.job, EventName::ReviewReminded).await, 4);
    let reminded = review(at, &id).await;
    assert_eq!((reminded.reminders, reminded.remind_at), (4, Some(NOW.plus_ms(70))));
    vote(at, &id, "ann", true, NOW.plus_ms(61)).await;
    vote(at, &id, "ben", true, NOW.plus_ms(61)).await;
    assert_eq!(at.perform(Duty::RemindReviews, NOW.plus_ms(90)).await, 0, "it is decided");
}

async fn silence_escalates_and_finally_rejects(at: &Opened) {
    let (held, id) = parked(at).await;
    vote(at, &id, "ann", true, NOW).await;
    assert_eq!(at.perform(Duty::ExpireReviews, NOW.plus_ms(99)).await, 0);
    assert_eq!(at.perform(Duty::ExpireReviews, NOW.plus_ms(105)).await, 1);
    assert_eq!(at.perform(Duty::ExpireReviews, NOW.plus_ms(105)).await, 0);
    let next = review(at, &id).await;
    assert_eq!((next.reviewer.as_str(), next.step, next.state), ("eve", 1, ReviewState::Open));
    assert_eq!((next.deadline_at, next.remind_at), (Some(NOW.plus_ms(205)), Some(NOW.plus_ms(115))));
    assert_eq!(at.state(&held.job).await, JobState::Pending);
    assert!(matches!(vote(at, &id, "ben", true, NOW.plus_ms(106)).await, DecisionOutcome::NotAsked(_)));
    silence_of_the_last_step_rejects(at, &held.job, &id).await;
}

async fn silence_of_the_last_step_rejects(at: &Opened, job: &JobId, id: &ReviewId) {
    assert_eq!(at.perform(Duty::ExpireReviews, NOW.plus_ms(205)).await, 1);
    assert_eq!(review(at, id).await.state, ReviewState::Expired);
    assert_eq!(at.state(job).await, JobState::Available);
    assert_eq!(count(at, job, EventName::ReviewEscalated).await, 1);
    assert_eq!(vote(at, id, "eve", true, NOW).await, DecisionOutcome::TooLate(ReviewState::Expired));
}

/// The reviewers of a moment do not depend on when the scheduler runs.
async fn an_answer_after_the_deadline_belongs_to_the_next_step(at: &Opened) {
    let (held, id) = parked(at).await;
    assert!(matches!(vote(at, &id, "ann", true, NOW.plus_ms(100)).await, DecisionOutcome::NotAsked(_)));
    let answer = vote(at, &id, "eve", true, NOW.plus_ms(150)).await;
    let DecisionOutcome::Decided(decided) = answer else { panic!("{answer:?}") };
    assert_eq!((decided.state, decided.step), (ReviewState::Approved, 1));
    assert_eq!(at.perform(Duty::ExpireReviews, NOW.plus_ms(150)).await, 0);
    assert_eq!(count(at, &held.job, EventName::ReviewEscalated).await, 1);
}

/// Returns an agent that is asked for a review, and the review. The tree may have `most` jobs.
fn auditor(most: u32) -> (ReviewId, NewChild) {
    let engagement: EngagementId = SystemIds.next().into();
    let requested = NewReview { asked: Some(engagement.clone()), ..question(Some(NOW.plus_ms(50))) };
    let about = turnstone_domain::review::call_of_review(&requested.call_id, requested.kind);
    let id = requested.id.clone();
    let child = NewChild {
        job: JobId(SystemIds.next()),
        engagement,
        agent: Box::new(AgentDefinition { name: "auditor".into(), ..AgentDefinition::default() }),
        call_id: about,
        turn: 1,
        mode: DelegationMode::Supervisor,
        args: RawJson::of(&json!(["may it?"])),
        meta: RawObject::new(),
        timeout_ms: Some(50),
        jobs: 1,
        max_jobs_per_tree: most,
        review: Some(Box::new(requested)),
    };
    (id, child)
}

async fn a_reviewer_without_room_in_the_tree_approves_nothing(at: &Opened) {
    let held = at.held(Some(100)).await;
    let (id, child) = auditor(1);
    at.settle(&held.lease, Settlement::Park { wait: Wait::Children(vec![child]) }).await;
    assert_eq!(review(at, &id).await.state, ReviewState::Rejected);
    assert_eq!(at.state(&held.job).await, JobState::Available);
    assert_eq!(at.claim(JobKind::Agent, 2).await.len(), 1, "the reviewer has no job");
}

/// OAS-30, OAS-A9: an agent as reviewer is a row of the inbox, which only the end of its engagement answers.
async fn an_agent_is_in_the_inbox_until_its_engagement_ends(at: &Opened) {
    for (verdict, state) in [
        (json!({"approve": true, "reason": "cheap"}), ReviewState::Approved),
        (json!("done"), ReviewState::Rejected),
    ] {
        let held = at.held(Some(100)).await;
        let (id, child) = auditor(1_000);
        let engagement = child.engagement.clone();
        at.settle(&held.lease, Settlement::Park { wait: Wait::Children(vec![child]) }).await;
        let open = review(at, &id).await;
        assert_eq!((open.state, open.asked.as_ref()), (ReviewState::Open, Some(&engagement)));
        assert!(matches!(vote(at, &id, "ann", true, NOW).await, DecisionOutcome::NotAsked(_)));
        assert_eq!(at.perform(Duty::ExpireReviews, NOW.plus_ms(50)).await, 0, "its engagement times out");
        let child = at.claim(JobKind::Agent, 1).await.remove(0);
        at.settle(&child.lease, Settlement::Complete { result: RawJson::of(&verdict), withheld: false })
            .await;
        let decided = review(at, &id).await;
        assert_eq!((decided.state, decided.decided_by.as_deref()), (state, Some("ann")));
        assert_eq!(at.state(&held.job).await, JobState::Available);
        assert_eq!(count(at, &held.job, EventName::ReviewDecided).await, 1);
        let parent = at.claim(JobKind::Agent, 1).await.remove(0);
        at.settle(&parent.lease, complete()).await;
    }
}
