//! Workflows: when each job is enqueued and with which results, and how each end of a job ends the workflow.

use super::backend::Opened;
use super::jobs::{LAPSED, LEASE, NOW, agent, complete, discard, nothing, plain, retry};
use super::on_every_store;
use serde_json::json;
use std::collections::BTreeSet;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::terms::{OnConflict, Unique};
use turnstone_domain::workflow::{StepRole, StepState, WorkflowKind, WorkflowState};
use turnstone_domain::{Ids, JobId, JobState, NewJob, Settlement, Timestamp};
use turnstone_store::{
    Claim, Duty, JobKind, NewStep, NewWorkflow, Page, StoreError, WaitingJob, Workflow, WorkflowCancel,
    WorkflowFilter,
};

on_every_store![
    a_chain_runs_in_order_and_passes_results_on,
    a_chain_ends_with_the_first_step_that_fails,
    every_end_of_a_step_advances_its_workflow,
    a_retried_step_counts_once,
    a_group_runs_at_once_and_counts_its_successes,
    a_group_fails_when_one_member_does_but_not_before_all_have_ended,
    a_batch_calls_back_once_each,
    a_step_of_a_graph_waits_for_all_it_needs,
    a_cancelled_workflow_starts_nothing_more,
    an_agent_job_is_a_step_like_any_other,
    times_count_from_the_enqueueing_of_the_step,
    ids_are_taken_once,
    a_step_that_would_not_be_unique_has_failed,
    of_two_ends_in_two_processes_each_counts_once,
    a_thousand_members_end_in_one_go,
    an_old_workflow_is_pruned_whole,
    a_tenant_sees_its_own_workflows,
    events_of_a_workflow_have_no_gaps,
];

pub fn step(needs: &[usize]) -> NewStep {
    of(plain(0), needs)
}

fn of(job: NewJob, needs: &[usize]) -> NewStep {
    let waiting = WaitingJob { job, run_relative: false, expiry_relative: false };
    NewStep { name: None, role: StepRole::Member, needs: needs.to_vec(), waiting }
}

fn callback(role: StepRole, members: usize) -> NewStep {
    NewStep { role, ..step(&(0..members).collect::<Vec<_>>()) }
}

pub fn workflow(kind: WorkflowKind, steps: Vec<NewStep>) -> NewWorkflow {
    NewWorkflow { id: SystemIds.next(), tenant: None, kind, name: None, steps, created_at: NOW }
}

fn chain(steps: usize) -> NewWorkflow {
    let needs = |at: usize| at.checked_sub(1).into_iter().collect::<Vec<_>>();
    workflow(WorkflowKind::Chain, (0..steps).map(|at| step(&needs(at))).collect())
}

fn group(steps: usize) -> NewWorkflow {
    workflow(WorkflowKind::Group, (0..steps).map(|_| step(&[])).collect())
}

fn batch(members: usize) -> NewWorkflow {
    let mut steps: Vec<NewStep> = (0..members).map(|_| step(&[])).collect();
    for role in [StepRole::OnComplete, StepRole::OnSuccess, StepRole::OnFailure] {
        steps.push(callback(role, members));
    }
    workflow(WorkflowKind::Batch, steps)
}

fn ids(new: &NewWorkflow) -> Vec<JobId> {
    new.steps.iter().map(|step| step.waiting.job.id.clone()).collect()
}

fn result(value: serde_json::Value) -> Settlement {
    Settlement::Complete { result: value.into(), withheld: false }
}

impl Opened {
    pub async fn create(&self, new: &NewWorkflow) -> Vec<JobId> {
        self.store.workflows.create(new.clone()).await.unwrap();
        ids(new)
    }

    pub async fn shown(&self, new: &NewWorkflow) -> (Workflow, Vec<StepState>) {
        let (workflow, steps) = self.store.workflows.workflow(&new.id, None).await.unwrap().unwrap();
        (workflow, steps.into_iter().map(|step| step.state).collect())
    }

    async fn end_of(&self, new: &NewWorkflow) -> (WorkflowState, i64) {
        let (workflow, _) = self.shown(new).await;
        (workflow.state, workflow.succeeded)
    }

    /// Claims all available jobs, in order.
    async fn claims(&self) -> Vec<Claim> {
        self.claim(JobKind::Plain, 10_000).await
    }

    async fn one(&self) -> Claim {
        let mut claims = self.claims().await;
        assert_eq!(claims.len(), 1, "{claims:?}");
        claims.remove(0)
    }
}

async fn a_chain_runs_in_order_and_passes_results_on(at: &Opened) {
    let new = chain(3);
    let jobs = at.create(&new).await;
    let first = at.one().await;
    assert_eq!((&first.job, &first.parent_results), (&jobs[0], &None));
    assert_eq!(at.job(&first.job).await.workflow_id.as_ref(), Some(&new.id));
    assert!(at.store.views.job(&jobs[1]).await.unwrap().is_none(), "it is not enqueued yet");
    at.settle(&first.lease, result(json!({"n": 1}))).await;
    let second = at.one().await;
    assert_eq!((&second.job, second.parent_results), (&jobs[1], Some(vec![r#"{"n":1}"#.to_owned()])));
    assert_eq!(at.job(&second.job).await.parent_results, Some(vec![r#"{"n":1}"#.to_owned()]));
    assert_eq!(at.end_of(&new).await, (WorkflowState::Running, 1));
    at.settle(&second.lease, result(json!("two"))).await;
    let third = at.one().await;
    assert_eq!((&third.job, third.parent_results), (&jobs[2], Some(vec![r#""two""#.to_owned()])));
    at.settle(&third.lease, complete()).await;
    assert_eq!(at.end_of(&new).await, (WorkflowState::Completed, 3));
    assert_eq!(at.shown(&new).await.1, [StepState::Succeeded; 3]);
}

async fn a_chain_ends_with_the_first_step_that_fails(at: &Opened) {
    let new = chain(3);
    at.create(&new).await;
    at.settle(&at.one().await.lease, complete()).await;
    at.settle(&at.one().await.lease, discard()).await;
    assert!(at.claims().await.is_empty());
    let (workflow, steps) = at.shown(&new).await;
    assert_eq!(
        (workflow.state, workflow.succeeded, workflow.ended_at),
        (WorkflowState::Failed, 1, Some(NOW))
    );
    assert_eq!(steps, [StepState::Succeeded, StepState::Failed, StepState::Skipped]);
}

async fn every_end_of_a_step_advances_its_workflow(at: &Opened) {
    let expiring = NewJob { expires_at: Some(NOW.plus_ms(1)), ..plain(0) };
    let expired = workflow(WorkflowKind::Chain, vec![of(expiring, &[]), step(&[0])]);
    at.create(&expired).await;
    at.perform(Duty::ExpireJobs, NOW.plus_ms(2)).await;
    assert_eq!(at.end_of(&expired).await.0, WorkflowState::Failed);
    let cancelled = chain(2);
    let jobs = at.create(&cancelled).await;
    at.store.intake.cancel(&jobs[0], NOW).await.unwrap();
    assert_eq!(at.end_of(&cancelled).await.0, WorkflowState::Failed);
    let replaced = workflow(WorkflowKind::Chain, vec![of(unique("r", OnConflict::Reject), &[]), step(&[0])]);
    at.create(&replaced).await;
    at.push(unique("r", OnConflict::Replace)).await;
    assert_eq!(at.end_of(&replaced).await.0, WorkflowState::Failed);
    at.settle(&at.one().await.lease, complete()).await;
    assert!(at.claims().await.is_empty());
}

async fn a_retried_step_counts_once(at: &Opened) {
    let new = chain(2);
    let jobs = at.create(&new).await;
    at.settle(&at.one().await.lease, retry(NOW.plus_ms(5))).await;
    assert_eq!(at.shown(&new).await.1, [StepState::Enqueued, StepState::Waiting]);
    let again = at.claim_at(JobKind::Plain, 10, NOW.plus_ms(5)).await.remove(0);
    assert_eq!(again.job, jobs[0]);
    at.perform(Duty::ReapExpired, LAPSED.plus_ms(5)).await;
    at.settle(&at.one().await.lease, complete()).await;
    assert_eq!(at.one().await.job, jobs[1]);
}

async fn a_group_runs_at_once_and_counts_its_successes(at: &Opened) {
    let new = group(3);
    at.create(&new).await;
    let claims = at.claims().await;
    assert_eq!(claims.iter().map(|claim| claim.job.clone()).collect::<Vec<_>>(), ids(&new));
    for (n, claim) in claims.iter().enumerate() {
        assert_eq!(at.end_of(&new).await, (WorkflowState::Running, i64::try_from(n).unwrap()));
        at.settle(&claim.lease, complete()).await;
    }
    assert_eq!(at.end_of(&new).await, (WorkflowState::Completed, 3));
}

async fn a_group_fails_when_one_member_does_but_not_before_all_have_ended(at: &Opened) {
    let new = group(3);
    at.create(&new).await;
    let claims = at.claims().await;
    at.settle(&claims[0].lease, discard()).await;
    at.settle(&claims[1].lease, complete()).await;
    assert_eq!(at.end_of(&new).await, (WorkflowState::Running, 1));
    at.settle(&claims[2].lease, complete()).await;
    assert_eq!(at.end_of(&new).await, (WorkflowState::Failed, 2));
}

async fn a_batch_calls_back_once_each(at: &Opened) {
    for (end, state, role) in
        [(complete(), WorkflowState::Completed, 3), (discard(), WorkflowState::Failed, 4)]
    {
        let new = batch(2);
        let jobs = at.create(&new).await;
        let claims = at.claims().await;
        at.settle(&claims[0].lease, result(json!(7))).await;
        assert!(at.claims().await.is_empty(), "a member is still active");
        at.settle(&claims[1].lease, end).await;
        assert_eq!(at.end_of(&new).await.0, state);
        let called = at.claims().await;
        let expected = [jobs[2].clone(), jobs[role].clone()];
        assert_eq!(called.iter().map(|claim| claim.job.clone()).collect::<Vec<_>>(), expected);
        assert_eq!(called[0].parent_results.as_ref().unwrap()[0], "7");
        for claim in &called {
            at.settle(&claim.lease, discard()).await;
        }
        assert_eq!(at.end_of(&new).await.0, state, "a callback does not change how the batch ended");
        assert!(at.claims().await.is_empty());
    }
}

async fn a_step_of_a_graph_waits_for_all_it_needs(at: &Opened) {
    let new = workflow(WorkflowKind::Graph, vec![step(&[]), step(&[]), step(&[1, 0]), step(&[0])]);
    let jobs = at.create(&new).await;
    let claims = at.claims().await;
    assert_eq!(claims.len(), 2);
    at.settle(&claims[0].lease, result(json!("a"))).await;
    let fourth = at.one().await;
    assert_eq!((&fourth.job, fourth.parent_results), (&jobs[3], Some(vec![r#""a""#.to_owned()])));
    at.settle(&claims[1].lease, result(json!("b"))).await;
    let third = at.one().await;
    let results = Some(vec![r#""b""#.to_owned(), r#""a""#.to_owned()]);
    assert_eq!((&third.job, third.parent_results), (&jobs[2], results), "in the order of its needs");
    at.settle(&third.lease, complete()).await;
    assert_eq!(at.end_of(&new).await, (WorkflowState::Running, 3));
    at.settle(&fourth.lease, complete()).await;
    assert_eq!(at.end_of(&new).await, (WorkflowState::Completed, 4));
}

async fn a_cancelled_workflow_starts_nothing_more(at: &Opened) {
    let mut new = group(3);
    new.steps[2].waiting.job.run_at = NOW.plus_ms(50);
    let jobs = at.create(&new).await;
    let held = at.claim(JobKind::Plain, 1).await.remove(0);
    let waiting = chain(2);
    at.create(&waiting).await;
    let cancel = |id: String| async move { at.store.workflows.cancel(&id, None, NOW).await.unwrap() };
    assert_eq!(cancel(new.id.clone()).await, WorkflowCancel::Cancelled);
    assert_eq!(at.state(&jobs[0]).await, JobState::Active, "an active job may end");
    assert_eq!(
        (at.state(&jobs[1]).await, at.state(&jobs[2]).await),
        (JobState::Cancelled, JobState::Cancelled)
    );
    at.settle(&held.lease, complete()).await;
    assert_eq!(at.end_of(&new).await, (WorkflowState::Cancelled, 1));
    assert_eq!(cancel(new.id.clone()).await, WorkflowCancel::AlreadyEnded(WorkflowState::Cancelled));
    assert_eq!(cancel("nobody".to_owned()).await, WorkflowCancel::NotFound);
    assert_eq!(cancel(waiting.id.clone()).await, WorkflowCancel::Cancelled);
    assert!(at.claim_at(JobKind::Plain, 10, NOW.plus_ms(100)).await.is_empty());
    assert_eq!(at.shown(&waiting).await.1, [StepState::Failed, StepState::Skipped]);
}

async fn an_agent_job_is_a_step_like_any_other(at: &Opened) {
    let new = workflow(WorkflowKind::Chain, vec![step(&[]), of(agent(Some(9)), &[0]), step(&[1])]);
    let jobs = at.create(&new).await;
    at.settle(&at.one().await.lease, result(json!([1.5]))).await;
    let held = at.claim(JobKind::Agent, 1).await.remove(0);
    assert_eq!((&held.job, &held.parent_results), (&jobs[1], &Some(vec!["[1.5]".to_owned()])));
    assert_eq!(held.engagement.as_ref().unwrap().budget.limit, Some(9));
    at.settle(&held.lease, result(json!("done"))).await;
    assert_eq!(at.one().await.parent_results, Some(vec![r#""done""#.to_owned()]));
}

async fn times_count_from_the_enqueueing_of_the_step(at: &Opened) {
    let waiting = |run_relative, expiry_relative| {
        let job = NewJob { run_at: NOW.plus_ms(50), expires_at: Some(NOW.plus_ms(500)), ..plain(0) };
        let waiting = WaitingJob { job, run_relative, expiry_relative };
        NewStep { waiting, ..step(&[0]) }
    };
    let steps = vec![step(&[]), waiting(true, true), waiting(false, false)];
    let new = workflow(WorkflowKind::Graph, steps);
    let jobs = at.create(&new).await;
    let first = at.one().await;
    let later = NOW.plus_ms(100);
    at.store.ledger.settle(&first.lease, nothing(), complete(), later).await.unwrap();
    let relative = at.job(&jobs[1]).await;
    assert_eq!((relative.state, relative.created_at), (JobState::Scheduled, later));
    assert_eq!((relative.run_at, relative.expires_at), (later.plus_ms(50), Some(later.plus_ms(500))));
    let absolute = at.job(&jobs[2]).await;
    assert_eq!((absolute.state, absolute.run_at), (JobState::Available, later), "its time has passed");
    assert_eq!(absolute.expires_at, Some(NOW.plus_ms(500)));
}

async fn ids_are_taken_once(at: &Opened) {
    let new = chain(2);
    let jobs = at.create(&new).await;
    let again = at.store.workflows.create(NewWorkflow { id: new.id.clone(), ..chain(1) }).await.unwrap_err();
    assert!(matches!(again, StoreError::DuplicateWorkflow(id) if id == new.id));
    let mut other = chain(2);
    other.steps[1].waiting.job.id = jobs[0].clone();
    let taken = at.store.workflows.create(other.clone()).await.unwrap_err();
    assert!(matches!(&taken, StoreError::DuplicateJob(id) if *id == jobs[0]), "{taken}");
    other.steps[1].waiting.job.id = other.steps[0].waiting.job.id.clone();
    let twice = at.store.workflows.create(other).await.unwrap_err();
    assert!(matches!(twice, StoreError::DuplicateJob(_)));
    assert_eq!(at.query("SELECT count(*) FROM workflows").await, 1);
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 1);
}

fn unique(key: &str, on_conflict: OnConflict) -> NewJob {
    let mut job = plain(0);
    let states = vec![JobState::Available, JobState::Active];
    job.terms.unique = Some(Unique { fingerprint: key.to_owned(), period_ms: None, states, on_conflict });
    job
}

async fn a_step_that_would_not_be_unique_has_failed(at: &Opened) {
    at.push(unique("k", OnConflict::Reject)).await;
    at.claims().await;
    let at_once = workflow(WorkflowKind::Group, vec![step(&[]), of(unique("k", OnConflict::Ignore), &[])]);
    let refused = at.store.workflows.create(at_once).await.unwrap_err();
    assert!(matches!(refused, StoreError::NotUnique { .. }), "{refused}");
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 1, "it left no rows");
    let later = workflow(WorkflowKind::Chain, vec![step(&[]), of(unique("k", OnConflict::Reject), &[0])]);
    at.create(&later).await;
    at.settle(&at.one().await.lease, complete()).await;
    let (workflow, steps) = at.shown(&later).await;
    assert_eq!((workflow.state, workflow.succeeded), (WorkflowState::Failed, 1));
    assert_eq!(steps, [StepState::Succeeded, StepState::Failed]);
}

async fn of_two_ends_in_two_processes_each_counts_once(at: &Opened) {
    let second = at.place.open().await;
    for _ in 0..10 {
        let mut new = batch(8);
        new.steps.truncate(9);
        at.create(&new).await;
        let claims = at.claims().await;
        let ends = claims.iter().enumerate().map(|(n, claim)| {
            let ledger = if n % 2 == 0 { &at.store.ledger } else { &second.ledger };
            ledger.settle(&claim.lease, nothing(), complete(), NOW)
        });
        assert!(futures::future::join_all(ends).await.iter().all(Result::is_ok));
        assert_eq!(at.end_of(&new).await, (WorkflowState::Completed, 8));
        at.settle(&at.one().await.lease, complete()).await;
    }
    assert_eq!(at.query(&turnstone_tests::journal::event_count("workflow.completed")).await, 10);
}

async fn a_thousand_members_end_in_one_go(at: &Opened) {
    let new = group(1000);
    at.create(&new).await;
    let claims = at.claims().await;
    let ends = claims.iter().map(|claim| at.settle(&claim.lease, complete()));
    futures::future::join_all(ends).await;
    assert_eq!(at.end_of(&new).await, (WorkflowState::Completed, 1000));
}

async fn an_old_workflow_is_pruned_whole(at: &Opened) {
    let (ended, running) = (chain(1), chain(2));
    at.create(&ended).await;
    at.create(&running).await;
    for claim in at.claims().await {
        at.settle(&claim.lease, complete()).await;
    }
    let later = Timestamp(NOW.0 + 10 * LEASE);
    at.perform(Duty::FoldStatistics { until: later }, later).await;
    at.perform(Duty::Prune { before: later }, later).await;
    at.perform(Duty::Prune { before: later }, later).await;
    assert!(at.store.workflows.workflow(&ended.id, None).await.unwrap().is_none());
    assert_eq!(at.query("SELECT count(*) FROM workflow_steps").await, 2);
    assert_eq!(at.end_of(&running).await, (WorkflowState::Running, 1));
    let next = at.one().await;
    assert_eq!(next.parent_results, Some(vec![r#"{"answer":1}"#.to_owned()]));
    assert_eq!(at.job(&ids(&running)[0]).await.state, JobState::Completed, "its results may be needed");
}

async fn a_tenant_sees_its_own_workflows(at: &Opened) {
    let new = NewWorkflow { tenant: Some("alpha".into()), ..chain(1) };
    at.create(&new).await;
    at.create(&chain(1)).await;
    let workflows = &at.store.workflows;
    assert!(workflows.workflow(&new.id, Some("beta")).await.unwrap().is_none());
    assert!(workflows.workflow(&new.id, Some("alpha")).await.unwrap().is_some());
    assert_eq!(workflows.cancel(&new.id, Some("beta"), NOW).await.unwrap(), WorkflowCancel::NotFound);
    let page = Page { limit: 10, offset: 0 };
    let filter = WorkflowFilter { tenant: Some("alpha".into()), ..WorkflowFilter::default() };
    let (found, total) = workflows.workflows(&filter, page).await.unwrap();
    assert_eq!((found.len(), total, &found[0].id), (1, 1, &new.id));
    assert_eq!(workflows.workflows(&WorkflowFilter::default(), page).await.unwrap().1, 2);
    let failed = WorkflowFilter { state: Some(WorkflowState::Failed), ..WorkflowFilter::default() };
    assert_eq!(workflows.workflows(&failed, page).await.unwrap().1, 0);
}

async fn events_of_a_workflow_have_no_gaps(at: &Opened) {
    at.create(&chain(2)).await;
    at.settle(&at.one().await.lease, complete()).await;
    at.settle(&at.one().await.lease, discard()).await;
    let names =
        "SELECT v.names FROM journal AS v JOIN workflows AS w ON w.seq = v.stream ORDER BY v.last_event";
    assert_eq!(
        at.place.texts(names).await,
        ["workflow.started", "workflow.step_completed", "workflow.failed"]
    );
    let jobs: BTreeSet<String> = at.place.texts("SELECT id FROM jobs").await.into_iter().collect();
    assert_eq!(jobs.len(), 2);
    assert_eq!(at.query(turnstone_tests::journal::GAPS).await, 0);
}
