//! A job parks in one transaction with the jobs that it waits for, and each of their ends counts once.

use super::backend::Opened;
use super::jobs::{LEASE, NOW, agent, book, complete, discard, engagement, nothing, reserve};
use super::on_every_store;
use serde_json::json;
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{
    AgentDefinition, EventName, Ids, JobId, JobState, NewChild, NewJob, RawJson, RawObject, Settlement,
    Terms, Wait,
};
use turnstone_store::{CancelOutcome, Claim, Duty, JobKind, LedgerError, Past, StoreError};

on_every_store![
    a_parent_resumes_after_the_last_of_its_children,
    a_parent_without_open_children_resumes_at_once,
    a_tree_spends_from_the_budget_of_its_root,
    ends_at_the_same_moment_wake_a_parent_once,
    a_cancelled_root_cancels_its_tree,
    a_late_child_is_cancelled_and_its_parent_resumes,
    a_tree_is_deleted_as_a_whole,
    a_child_from_a_client_ends_with_a_discarded_root,
    a_tree_has_no_more_jobs_than_it_may,
    concurrent_parents_share_the_bound_of_their_tree,
    flows_of_a_node_start_all_or_none,
    a_child_from_a_client_finds_no_room_in_a_full_tree,
];

pub(super) fn child(timeout_ms: Option<i64>) -> NewChild {
    NewChild {
        job: JobId(SystemIds.next()),
        engagement: SystemIds.next().into(),
        agent: Box::new(AgentDefinition { name: "scout".into(), ..AgentDefinition::default() }),
        call_id: SystemIds.next().into(),
        turn: 1,
        mode: DelegationMode::Parallel,
        args: RawJson::of(&json!(["look"])),
        meta: RawObject::new(),
        timeout_ms,
        jobs: 1,
        max_jobs_per_tree: 1_000,
        review: None,
    }
}

/// Parks a job with so many children, and claims those.
async fn family(at: &Opened, parent: &Claim, children: usize, timeout_ms: Option<i64>) -> Vec<Claim> {
    let requested: Vec<NewChild> = (0..children).map(|_| child(timeout_ms)).collect();
    let ids: Vec<JobId> = requested.iter().map(|child| child.job.clone()).collect();
    at.settle(&parent.lease, Settlement::Park { wait: Wait::Children(requested) }).await;
    assert_eq!(at.state(&parent.job).await, JobState::Pending);
    let claims = at.claim(JobKind::Agent, children + 1).await;
    assert_eq!(
        claims.iter().map(|claim| claim.job.clone()).collect::<Vec<_>>(),
        ids,
        "in the order of the calls"
    );
    claims
}

async fn a_parent_resumes_after_the_last_of_its_children(at: &Opened) {
    let parent = at.held(Some(100)).await;
    let children = family(at, &parent, 2, None).await;
    for side in children.iter().map(|claim| claim.engagement.as_ref().unwrap()) {
        assert_eq!((side.depth, side.budget.limit), (1, Some(100)));
        assert!(matches!(side.past, Past::Nothing));
    }
    at.settle(&children[1].lease, complete()).await;
    assert_eq!(at.state(&parent.job).await, JobState::Pending, "the other one still works");
    at.settle(&children[0].lease, discard()).await;
    assert_eq!(at.state(&parent.job).await, JobState::Available);
    let events = at.events(&parent.job).await;
    use EventName::{DelegationCompleted, DelegationStarted, JobAvailable, JobParked};
    let expected = [
        JobParked,
        DelegationStarted,
        DelegationStarted,
        DelegationCompleted,
        DelegationCompleted,
        JobAvailable,
    ];
    assert_eq!(events[2..], expected);
    let next = at.claim(JobKind::Agent, 1).await.remove(0);
    assert_eq!((next.job.clone(), next.failures), (parent.job.clone(), 0));
    let recalled = at.store.ledger.reads().recall(&parent.job, 1, 10, true).await.unwrap().delegations;
    let states: Vec<DelegationState> = recalled.iter().map(|done| done.state).collect();
    assert_eq!(states, [DelegationState::Error, DelegationState::Success]);
    assert!(recalled[0].error.is_some() && recalled[1].result.is_some(), "{recalled:?}");
    let links = at.store.delegations.links(&parent.job, 10).await.unwrap();
    assert_eq!((links.depth, links.parent, links.below.len()), (0, None, 2));
    let links = at.store.delegations.links(&children[0].job, 10).await.unwrap();
    assert_eq!((links.depth, links.parent.map(|(job, _)| job)), (1, Some(parent.job)));
}

async fn a_parent_without_open_children_resumes_at_once(at: &Opened) {
    let parent = at.held(None).await;
    at.settle(&parent.lease, Settlement::Park { wait: Wait::Children(Vec::new()) }).await;
    assert_eq!(at.state(&parent.job).await, JobState::Available);
}

async fn a_tree_spends_from_the_budget_of_its_root(at: &Opened) {
    let parent = at.held(Some(100)).await;
    let children = family(at, &parent, 2, None).await;
    let ledger = &at.store.ledger;
    ledger.checkpoint(&children[0].lease, reserve(70), NOW, LEASE).await.unwrap();
    let refused = ledger.checkpoint(&children[1].lease, reserve(31), NOW, LEASE).await.unwrap_err();
    assert!(matches!(refused, LedgerError::BudgetExceeded { left: 30, needed: 31, .. }), "{refused}");
    ledger.checkpoint(&children[0].lease, book(70, 10), NOW, LEASE).await.unwrap();
    // The tokens that the first child returned are available to the second one, although its reservation was refused
    // before.
    let budget = ledger.checkpoint(&children[1].lease, reserve(90), NOW, LEASE).await.unwrap().budget;
    assert_eq!((budget.settled, budget.reserved), (10, 90));
    at.settle(&children[1].lease, discard()).await;
    let budget = at.store.views.budget(&engagement(&parent)).await.unwrap();
    assert_eq!((budget.settled, budget.reserved), (10, 0));
}

async fn ends_at_the_same_moment_wake_a_parent_once(at: &Opened) {
    let parent = at.held(None).await;
    let children = family(at, &parent, 8, None).await;
    let ends = children.iter().map(|child| at.settle(&child.lease, complete()));
    futures::future::join_all(ends).await;
    assert_eq!(at.state(&parent.job).await, JobState::Available);
    let events = at.events(&parent.job).await;
    assert_eq!(events.iter().filter(|name| **name == EventName::JobAvailable).count(), 1);
    assert_eq!(events.iter().filter(|name| **name == EventName::DelegationCompleted).count(), 8);
}

async fn a_cancelled_root_cancels_its_tree(at: &Opened) {
    let root = at.held(Some(100)).await;
    let children = family(at, &root, 2, None).await;
    let grandchildren = family(at, &children[0], 1, None).await;
    at.store.ledger.checkpoint(&grandchildren[0].lease, reserve(60), NOW, LEASE).await.unwrap();
    let outcome = at.store.intake.cancel(&root.job, NOW).await.unwrap();
    assert_eq!(outcome, CancelOutcome::Cancelled { previous: JobState::Pending });
    for claim in children.iter().chain(&grandchildren) {
        assert_eq!(at.state(&claim.job).await, JobState::Cancelled);
    }
    let late = at.store.ledger.settle(&children[1].lease, nothing(), complete(), NOW).await.unwrap_err();
    assert!(matches!(late, LedgerError::LeaseLost(_)), "{late}");
    assert_eq!(at.state(&root.job).await, JobState::Cancelled);
    assert_eq!(at.events(&root.job).await.last(), Some(&EventName::JobCancelled), "no event follows the end");
    assert_eq!(at.store.views.budget(&engagement(&root)).await.unwrap().reserved, 0);
}

/// A client enqueues a child of a root that is running.
async fn a_child_from_a_client_ends_with_a_discarded_root(at: &Opened) {
    let root = at.held(Some(100)).await;
    at.store.ledger.checkpoint(&root.lease, nothing(), NOW, LEASE).await.unwrap();
    let terms = Terms { works_for: Some(root.job.clone()), ..Terms::default() };
    let child = at.push(NewJob { terms, ..agent(None) }).await;
    at.settle(&root.lease, discard()).await;
    assert_eq!(at.state(&child).await, JobState::Cancelled);
}

async fn a_late_child_is_cancelled_and_its_parent_resumes(at: &Opened) {
    let parent = at.held(None).await;
    let children = family(at, &parent, 1, Some(1_000)).await;
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(NOW.plus_ms(1_000)));
    assert_eq!(at.perform(Duty::TimeOutJobs, NOW.plus_ms(999)).await, 0);
    assert_eq!(at.perform(Duty::TimeOutJobs, NOW.plus_ms(1_000)).await, 1);
    assert_eq!(at.state(&children[0].job).await, JobState::Cancelled);
    assert_eq!(at.state(&parent.job).await, JobState::Available);
    let recalled = at.store.ledger.reads().recall(&parent.job, 1, 10, true).await.unwrap().delegations;
    assert_eq!(recalled[0].state, DelegationState::Timeout);
}

async fn a_tree_is_deleted_as_a_whole(at: &Opened) {
    let parent = at.held(None).await;
    let children = family(at, &parent, 2, None).await;
    for child in &children {
        at.settle(&child.lease, complete()).await;
    }
    let parent = at.claim(JobKind::Agent, 1).await.remove(0);
    at.settle(&parent.lease, complete()).await;
    let later = NOW.plus_ms(3 * 3_600_000);
    while at.perform(Duty::FoldStatistics { until: later }, later).await > 0 {}
    while at.perform(Duty::Prune { before: later }, later).await > 0 {}
    for table in ["jobs", "engagements", "totals", "delegations"] {
        assert_eq!(at.query(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
}

/// Parks a job with so many children, in a tree that may have `most` jobs.
async fn park(at: &Opened, parent: &Claim, children: usize, most: u32) {
    let bounded = || NewChild { max_jobs_per_tree: most, ..child(None) };
    let requested = (0..children).map(|_| bounded()).collect();
    at.settle(&parent.lease, Settlement::Park { wait: Wait::Children(requested) }).await;
}

fn tree_jobs(claim: &Claim) -> i64 {
    claim.engagement.as_ref().unwrap().tree_jobs
}

async fn a_tree_has_no_more_jobs_than_it_may(at: &Opened) {
    let root = at.held(None).await;
    assert_eq!(tree_jobs(&root), 1);
    park(at, &root, 5, 4).await;
    let children = at.claim(JobKind::Agent, 10).await;
    assert_eq!(children.iter().map(tree_jobs).collect::<Vec<_>>(), [4, 4, 4], "the first three fit");
    park(at, &children[0], 1, 4).await;
    let child = at.claim(JobKind::Agent, 10).await;
    let claimed: Vec<&JobId> = child.iter().map(|claim| &claim.job).collect();
    assert_eq!(claimed, [&children[0].job], "nothing starts, and the parent continues at once");
    // A failed attempt and a further claim are no new jobs.
    assert_eq!(tree_jobs(&child[0]), 4);
    park(at, &child[0], 1, 5).await;
    let grandchild = at.claim(JobKind::Agent, 10).await;
    assert_eq!(grandchild.iter().map(tree_jobs).collect::<Vec<_>>(), [5], "a raised bound has room");
    // The ends of jobs give no room back.
    at.settle(&grandchild[0].lease, complete()).await;
    let child = at.claim(JobKind::Agent, 10).await;
    park(at, &child[0], 1, 5).await;
    assert_eq!(at.claim(JobKind::Agent, 10).await[0].job, child[0].job);
}

async fn concurrent_parents_share_the_bound_of_their_tree(at: &Opened) {
    let root = at.held(None).await;
    park(at, &root, 4, 10).await;
    let parents = at.claim(JobKind::Agent, 10).await;
    assert_eq!(parents.len(), 4);
    futures::future::join_all(parents.iter().map(|parent| park(at, parent, 3, 10))).await;
    assert_eq!(at.query("SELECT count(*) FROM delegations").await, 9, "with the root, ten jobs");
    assert_eq!(at.query("SELECT max(tree_jobs) FROM totals").await, 10);
}

async fn flows_of_a_node_start_all_or_none(at: &Opened) {
    let root = at.held(None).await;
    let flows = |most| {
        let flow = |jobs| NewChild { jobs, max_jobs_per_tree: most, ..child(None) };
        Settlement::Park { wait: Wait::Children(vec![flow(4), flow(0), flow(0)]) }
    };
    at.settle(&root.lease, flows(4)).await;
    let root = at.claim(JobKind::Agent, 10).await.remove(0);
    assert_eq!((tree_jobs(&root), at.query("SELECT count(*) FROM delegations").await), (1, 0));
    at.settle(&root.lease, flows(5)).await;
    let begun = at.claim(JobKind::Agent, 10).await;
    assert_eq!(begun.iter().map(tree_jobs).collect::<Vec<_>>(), [5, 5, 5]);
}

async fn a_child_from_a_client_finds_no_room_in_a_full_tree(at: &Opened) {
    let root = at.held(None).await;
    at.store.ledger.checkpoint(&root.lease, nothing(), NOW, LEASE).await.unwrap();
    let job = || {
        let max_jobs_per_tree = Some(2);
        let terms = Terms { works_for: Some(root.job.clone()), max_jobs_per_tree, ..Terms::default() };
        NewJob { terms, ..agent(None) }
    };
    at.push(job()).await;
    let refused = at.store.intake.push(vec![job()]).await.unwrap_err();
    assert!(matches!(refused, StoreError::TreeFull { jobs: 2, most: 2, .. }), "{refused}");
}
