//! Ended jobs are counted once, and deleted with all rows that belong to them.

use super::backend::Opened;
use super::jobs::{
    LEASE, NOW, agent, book, complete, discard, done, engagement, nothing, park, plain, reserve,
};
use super::on_every_store;
use serde_json::json;
use turnstone_domain::message::{Message, Role};
use turnstone_domain::terms::{Continues, RateLimit};
use turnstone_domain::tool_call::{ToolCallMove, ToolOutcome};
use turnstone_domain::{
    AgentDefinition, CallId, EngagementId, Ids, JobId, JobState, Lease, NewJob, Phase, Terms, Timestamp,
    TurnWrite, ids::SystemIds,
};
use turnstone_store::{ConfigChange, Duty, JobKind, NewAgent, NewTenants, Page, QueueLimits, Retention};

on_every_store![
    ended_jobs_are_counted_once,
    a_long_time_is_counted_in_bounded_steps,
    prune_removes_all_that_ended_and_nothing_else,
    an_uncounted_job_is_not_pruned,
    prune_is_bounded,
    a_definition_is_deleted_with_its_last_engagement,
    each_input_runs_with_its_own_agent,
    the_budget_of_a_root_is_deleted_with_the_last_of_its_tree,
    a_queue_keeps_its_jobs_for_its_retention,
    a_limit_is_deleted_with_the_last_job_that_names_it,
    an_endless_retention_does_not_stop_others,
];

const HOUR: i64 = 3_600_000;

/// Completes, discards or cancels a plain job at a time.
async fn ended(at: &Opened, state: JobState, when: Timestamp) -> JobId {
    let id = at.push(plain(0)).await;
    let held = at.claim(JobKind::Plain, 1).await.remove(0);
    let end = match state {
        JobState::Completed => complete(),
        JobState::Discarded => discard(),
        _ => {
            at.store.intake.cancel(&id, when).await.unwrap();
            return id;
        }
    };
    at.store.ledger.settle(&held.lease, nothing(), end, when).await.unwrap();
    id
}

/// Counts until nothing is left to count.
async fn fold(at: &Opened, until: Timestamp) -> usize {
    let term = at.term().await;
    let mut steps = 1;
    while at.store.upkeep.perform(Duty::FoldStatistics { until }, &term, until, 1).await.unwrap() > 0 {
        steps += 1;
        assert!(steps < 10_000, "it counts for ever");
    }
    steps
}

/// Returns (hour, state, jobs, tokens, duration) of queue `q`, newest first.
async fn counted(at: &Opened) -> Vec<(i64, JobState, i64, i64, i64)> {
    let hours = at.store.views.statistics(Timestamp(0)).await.unwrap();
    assert!(hours.iter().all(|hour| hour.queue == "q"));
    hours.into_iter().map(|h| (h.hour.0 / HOUR, h.state, h.jobs, h.tokens, h.took_ms)).collect()
}

/// Ends five jobs in two hours, and enqueues another one.
async fn five_ends(at: &Opened) {
    use JobState::{Cancelled, Completed, Discarded};
    ended(at, Completed, NOW.plus_ms(10)).await;
    ended(at, Completed, NOW.plus_ms(30)).await;
    ended(at, Discarded, NOW.plus_ms(40)).await;
    let held = at.held(Some(100)).await;
    at.store.ledger.checkpoint(&held.lease, reserve(50), NOW, LEASE).await.unwrap();
    at.store.ledger.checkpoint(&held.lease, book(50, 7), NOW, LEASE).await.unwrap();
    at.store.ledger.settle(&held.lease, nothing(), complete(), NOW.plus_ms(60)).await.unwrap();
    ended(at, Cancelled, Timestamp(2 * HOUR)).await;
    at.push(plain(0)).await;
}

async fn ended_jobs_are_counted_once(at: &Opened) {
    use JobState::{Cancelled, Completed, Discarded};
    five_ends(at).await;
    fold(at, NOW.plus_ms(10)).await;
    assert_eq!(counted(at).await, [], "a job that ends at the boundary counts in the next step");
    fold(at, NOW.plus_ms(35)).await;
    assert_eq!(counted(at).await, [(0, Completed, 2, 0, 40)]);
    for _ in 0..3 {
        fold(at, Timestamp(2 * HOUR)).await;
        assert_eq!(counted(at).await, [(0, Completed, 3, 7, 100), (0, Discarded, 1, 0, 40)]);
    }
    fold(at, Timestamp(2 * HOUR + 1)).await;
    fold(at, NOW).await;
    let last = (2, Cancelled, 1, 0, 2 * HOUR - NOW.0);
    assert_eq!(counted(at).await, [last, (0, Completed, 3, 7, 100), (0, Discarded, 1, 0, 40)]);
    let since = at.store.views.statistics(Timestamp(2 * HOUR)).await.unwrap();
    assert_eq!(since.len(), 1);
}

async fn a_long_time_is_counted_in_bounded_steps(at: &Opened) {
    for hour in [1, 2, 24 * 365] {
        ended(at, JobState::Completed, Timestamp(hour * HOUR)).await;
    }
    let steps = fold(at, Timestamp(24 * 366 * HOUR)).await;
    assert!(steps < 50, "{steps} steps: time without jobs costs nothing");
    assert_eq!(counted(at).await.iter().map(|row| row.2).collect::<Vec<_>>(), [1, 1, 1]);
}

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

async fn rows(at: &Opened) -> Vec<(&'static str, i64)> {
    let mut rows = Vec::new();
    for table in TABLES {
        rows.push((table, at.query(&format!("SELECT count(*) FROM {table}")).await));
    }
    rows
}

/// Runs an engagement with a row in every table to its end.
async fn lived(at: &Opened, completed: bool, when: Timestamp) -> (JobId, EngagementId) {
    let held = at.held(Some(100)).await;
    let call_id: CallId = SystemIds.next().into();
    let intend = ToolCallMove::Intend {
        call_id: call_id.clone(),
        turn: 1,
        position: 0,
        name: "pay".into(),
        input: json!({}),
        idempotent: false,
        sent: true,
    };
    let outcome = ToolOutcome::Success { output: json!(1) };
    let settle = ToolCallMove::Settle { call_id, outcome, handled: None, duration_ms: 1, withheld: false };
    let write = TurnWrite {
        messages: vec![(1, Message::text(Role::User, "go").into())],
        tool_calls: vec![intend],
        ..done(Phase::Init)
    };
    at.store.ledger.checkpoint(&held.lease, write, NOW, LEASE).await.unwrap();
    let write = TurnWrite { tool_calls: vec![settle], ..nothing() };
    at.store.ledger.settle(&held.lease, write, park(Some(NOW)), NOW).await.unwrap();
    assert_eq!(at.perform(Duty::ExpireReviews, NOW).await, 1);
    let again = at.claim(JobKind::Agent, 1).await.remove(0);
    assert_eq!(again.job, held.job);
    let end = if completed { complete() } else { discard() };
    at.store.ledger.settle(&again.lease, done(Phase::Norm), end, when).await.unwrap();
    (held.job.clone(), engagement(&held))
}

/// Creates the jobs that must stay when those that ended before 100 ms are pruned. Returns one of them.
async fn what_stays(at: &Opened) -> (JobId, EngagementId) {
    let kept = lived(at, true, NOW.plus_ms(100)).await;
    lived(at, false, NOW.plus_ms(100)).await;
    ended(at, JobState::Completed, NOW.plus_ms(100)).await;
    let cancelled = at.push(agent(None)).await;
    at.store.intake.cancel(&cancelled, NOW.plus_ms(100)).await.unwrap();
    at.push(NewJob { run_at: NOW.plus_ms(1_000_000), ..agent(Some(3)) }).await;
    kept
}

async fn is_complete(at: &Opened, (job, engagement): &(JobId, EngagementId), events: usize) {
    assert_eq!(at.events(job).await.len(), events);
    let page = Page { limit: 100, offset: 0 };
    assert_eq!(at.store.views.checkpoints(engagement, page).await.unwrap().len(), 2);
    assert_eq!(at.store.views.messages(engagement, 0, 100).await.unwrap().len(), 1);
    assert_eq!(at.store.views.tool_calls(engagement).await.unwrap().len(), 1);
    assert_eq!(at.job(job).await.result, Some(json!({"answer": 1}).into()));
}

async fn prune_removes_all_that_ended_and_nothing_else(at: &Opened) {
    let kept = what_stays(at).await;
    let events = at.events(&kept.0).await.len();
    let before = rows(at).await;
    assert!(before.iter().all(|(_, count)| *count > 0), "{before:?}");
    let old = [
        lived(at, true, NOW.plus_ms(99)).await.0,
        lived(at, false, NOW.plus_ms(99)).await.0,
        ended(at, JobState::Discarded, NOW.plus_ms(99)).await,
    ];
    fold(at, NOW.plus_ms(1_000)).await;
    for (before_ms, pruned) in [(99, 0), (100, 3), (100, 0)] {
        let duty = Duty::Prune { before: NOW.plus_ms(before_ms) };
        assert_eq!(at.perform(duty, NOW).await, pruned);
    }
    assert_eq!(rows(at).await, before);
    for id in &old {
        assert!(at.store.views.job(id).await.unwrap().is_none());
    }
    is_complete(at, &kept, events).await;
}

/// Returns a further input with an agent of this intent.
fn further(first: &NewJob, intent: &str) -> NewJob {
    let mut job = NewJob { id: JobId(SystemIds.next()), ..first.clone() };
    job.terms.continues = Some(Continues::Always);
    job.engagement.as_mut().unwrap().agent.instructions = intent.into();
    job
}

/// Returns the lease and the intent of the next claimed job.
async fn claimed(at: &Opened, now: Timestamp) -> (Lease, String) {
    let claim = at.claim_at(JobKind::Agent, 1, now).await.remove(0);
    (claim.lease, claim.engagement.unwrap().agent.instructions.clone())
}

/// The agent of a further input applies from its own turn on, in every process. The running input keeps its agent. An
/// input that is cancelled before its turn changes nothing. The definitions are deleted with the engagement.
async fn each_input_runs_with_its_own_agent(at: &Opened) {
    let first = agent(None);
    let first = NewJob { engagement: further(&first, "one").engagement, ..first };
    let id = first.engagement.as_ref().unwrap().id.clone();
    at.push(first.clone()).await;
    let shown = async || at.store.views.engagement(&id).await.unwrap().unwrap().1.instructions.clone();
    assert_eq!(claimed(at, NOW).await.1, "one");
    let (second, third) = (further(&first, "two"), further(&first, "three"));
    at.store.intake.push(vec![second.clone(), third.clone()]).await.unwrap();
    assert_eq!(shown().await, "one");
    let later = NOW.plus_ms(LEASE + 1);
    assert_eq!(at.perform(Duty::ReapExpired, later).await, 1);
    let (lease, intent) = claimed(at, later).await;
    assert_eq!((intent, lease.job), ("one".to_owned(), first.id.clone()), "it is the same input");
    at.store.intake.cancel(&second.id, later).await.unwrap();
    at.store.intake.cancel(&first.id, later).await.unwrap();
    assert_eq!(shown().await, "three");
    later_inputs_have_their_own_agents(at, &first, later).await;
    assert_eq!(shown().await, "four", "it was the first input");
    fold(at, later.plus_ms(HOUR)).await;
    while at.perform(Duty::Prune { before: later.plus_ms(1) }, later).await > 0 {}
    assert_eq!((definitions(at).await, at.query("SELECT count(*) FROM input_definitions").await), (0, 0));
}

async fn later_inputs_have_their_own_agents(at: &Opened, first: &NewJob, later: Timestamp) {
    let (lease, intent) = claimed(at, later).await;
    assert_eq!(intent, "three");
    at.settle(&lease, complete()).await;
    at.push(further(first, "four")).await;
    let (lease, intent) = claimed(at, later).await;
    assert_eq!(intent, "four");
    at.settle(&lease, complete()).await;
    assert_eq!(definitions(at).await, 4);
}

/// Returns the number of definitions.
async fn definitions(at: &Opened) -> i64 {
    at.query("SELECT count(*) FROM agent_definitions").await
}

async fn a_definition_is_deleted_with_its_last_engagement(at: &Opened) {
    let named = |name: &str| AgentDefinition { name: name.into(), ..AgentDefinition::default() };
    let (definition, source) = (named("registered"), "name: registered".into());
    let new = NewAgent { definition, source, tenants: NewTenants::All, at: NOW };
    at.store.intake.register_agent(new).await.unwrap();
    let mut jobs = Vec::new();
    for name in ["registered", "ad-hoc", "ad-hoc"] {
        let mut job = agent(None);
        job.engagement.as_mut().unwrap().agent = named(name);
        at.push(job).await;
        jobs.push(at.claim(JobKind::Agent, 1).await.remove(0));
    }
    assert_eq!(definitions(at).await, 2);
    for (claim, ended) in jobs.iter().zip([10, 10, 20]) {
        at.store.ledger.settle(&claim.lease, nothing(), complete(), NOW.plus_ms(ended)).await.unwrap();
    }
    fold(at, NOW.plus_ms(1_000)).await;
    for (before_ms, pruned, left) in [(15, 2, 2), (25, 1, 1)] {
        assert_eq!(at.perform(Duty::Prune { before: NOW.plus_ms(before_ms) }, NOW).await, pruned);
        assert_eq!(definitions(at).await, left, "before {before_ms}");
    }
    // The definition can be stored again.
    let mut job = agent(None);
    job.engagement.as_mut().unwrap().agent = named("ad-hoc");
    at.push(job).await;
    assert_eq!(at.claim(JobKind::Agent, 1).await.len(), 1);
}

/// A tree is deleted in two steps, the root first.
async fn the_budget_of_a_root_is_deleted_with_the_last_of_its_tree(at: &Opened) {
    let root = at.held(Some(100)).await;
    let child =
        NewJob { terms: Terms { works_for: Some(root.job.clone()), ..Terms::default() }, ..agent(None) };
    at.push(child).await;
    let child = at.claim(JobKind::Agent, 1).await.remove(0);
    at.store.ledger.settle(&root.lease, nothing(), complete(), NOW.plus_ms(10)).await.unwrap();
    at.store.ledger.settle(&child.lease, nothing(), complete(), NOW.plus_ms(20)).await.unwrap();
    fold(at, NOW.plus_ms(1_000)).await;
    // The child has totals of its own beside those of the root, whose budget it uses.
    let totals = "SELECT count(*) FROM totals WHERE seq > 0";
    for (before_ms, left) in [(15, 2), (25, 0)] {
        assert_eq!(at.perform(Duty::Prune { before: NOW.plus_ms(before_ms) }, NOW).await, 1);
        assert_eq!(at.query(totals).await, left, "before {before_ms}");
    }
}

async fn an_uncounted_job_is_not_pruned(at: &Opened) {
    let id = ended(at, JobState::Completed, NOW).await;
    let later = NOW.plus_ms(1_000_000);
    assert_eq!(at.perform(Duty::Prune { before: later }, later).await, 0);
    fold(at, NOW).await;
    assert_eq!(at.perform(Duty::Prune { before: later }, later).await, 0);
    fold(at, NOW.plus_ms(1)).await;
    assert_eq!(at.perform(Duty::Prune { before: later }, later).await, 1);
    assert!(at.store.views.job(&id).await.unwrap().is_none());
    assert_eq!(counted(at).await.len(), 1, "statistics outlive the jobs");
}

async fn prune_is_bounded(at: &Opened) {
    for _ in 0..5 {
        ended(at, JobState::Completed, NOW).await;
    }
    let later = NOW.plus_ms(1_000_000);
    fold(at, later).await;
    let term = at.term().await;
    for left in [3, 1, 0] {
        let pruned = at.store.upkeep.perform(Duty::Prune { before: later }, &term, later, 2).await.unwrap();
        assert!((1..=2).contains(&pruned), "{pruned}");
        assert_eq!(at.query("SELECT count(*) FROM jobs").await, left);
    }
    // Their commits follow, as many at a time.
    while at.store.upkeep.perform(Duty::Prune { before: later }, &term, later, 2).await.unwrap() > 0 {}
    assert!(rows(at).await.iter().all(|(_, count)| *count == 0));
}

/// OJS queue configuration §6.3: a queue's retention is shorter or longer than the fleet's.
async fn a_queue_keeps_its_jobs_for_its_retention(at: &Opened) {
    use JobState::{Cancelled, Completed, Discarded};
    let of_queue = async |queue: &str, retention: Retention| {
        let limits = Some(QueueLimits { retention, ..QueueLimits::default() });
        at.store
            .queues
            .configure(queue, ConfigChange { limits, ..ConfigChange::default() }, NOW)
            .await
            .unwrap();
    };
    let retention = Retention { completed_ms: Some(1_000), discarded_ms: Some(9_000), cancelled_ms: None };
    of_queue("q", retention).await;
    assert_eq!(at.store.queues.queue("q").await.unwrap().unwrap().limits.retention, retention);
    let [completed, discarded, cancelled] =
        [ended(at, Completed, NOW).await, ended(at, Discarded, NOW).await, ended(at, Cancelled, NOW).await];
    let elsewhere = at.push(NewJob { queue: "other".into(), ..plain(0) }).await;
    at.store.intake.cancel(&elsewhere, NOW).await.unwrap();
    fold(at, NOW.plus_ms(100_000)).await;
    let left = async || {
        let mut left = Vec::new();
        for id in [&completed, &discarded, &cancelled, &elsewhere] {
            left.push(at.store.views.job(id).await.unwrap().is_some());
        }
        left
    };
    // The fleet's retention is five seconds.
    for (now_ms, pruned, expected) in [
        (1_000, 0, [true, true, true, true]),
        (1_001, 1, [false, true, true, true]),
        (5_001, 2, [false, true, false, false]),
        (9_001, 1, [false, false, false, false]),
    ] {
        let now = NOW.plus_ms(now_ms);
        assert_eq!(at.perform(Duty::Prune { before: now.plus_ms(-5_000) }, now).await, pruned, "{now_ms}");
        assert_eq!(left().await, expected, "{now_ms}");
    }
    let kept = ended(at, Completed, NOW).await;
    fold(at, NOW.plus_ms(100_000)).await;
    of_queue("q", Retention::default()).await;
    assert_eq!(at.perform(Duty::Prune { before: Timestamp(0) }, NOW.plus_ms(90_000)).await, 0);
    assert!(at.store.views.job(&kept).await.unwrap().is_some(), "it is kept as everything is again");
}

async fn a_limit_is_deleted_with_the_last_job_that_names_it(at: &Opened) {
    let named = |key: &str| {
        let limit = RateLimit { key: Some(key.to_owned()), concurrency: Some(5), ..RateLimit::default() };
        NewJob { terms: Terms { rate_limit: Some(limit), ..Terms::default() }, ..plain(0) }
    };
    let id = at.push(named("used")).await;
    at.push(named("waits")).await;
    at.store
        .queues
        .override_limit(None, "operated", Some(RateLimit { concurrency: Some(1), ..RateLimit::default() }))
        .await
        .unwrap();
    at.store.intake.cancel(&id, NOW).await.unwrap();
    let later = NOW.plus_ms(1_000);
    fold(at, later).await;
    let names = async || {
        let (limits, total) = at.store.queues.limits(None, Page { limit: 9, offset: 0 }).await.unwrap();
        assert_eq!(limits.len() as u64, total);
        limits.into_iter().map(|limit| limit.name).collect::<Vec<_>>()
    };
    assert_eq!(at.perform(Duty::Prune { before: Timestamp(0) }, later).await, 0);
    assert_eq!(names().await, ["operated", "used", "waits"], "a job that is kept still names it");
    at.perform(Duty::Prune { before: later }, later).await;
    assert_eq!(names().await, ["operated", "waits"]);
}

/// The retention of one conversation exceeds the range of numbers. It is kept, and others are deleted.
async fn an_endless_retention_does_not_stop_others(at: &Opened) {
    let mut ended = Vec::new();
    for retention_ms in [i64::MAX, 1_000, i64::MIN] {
        let mut job = agent(None);
        job.engagement.as_mut().unwrap().agent.state.retention_ms = Some(retention_ms);
        at.push(job).await;
        let held = at.claim(JobKind::Agent, 1).await.remove(0);
        let write = TurnWrite { messages: vec![(1, Message::text(Role::User, "go").into())], ..nothing() };
        at.store.ledger.settle(&held.lease, write, complete(), NOW).await.unwrap();
        ended.push(engagement(&held));
    }
    at.perform(Duty::Prune { before: Timestamp(0) }, NOW.plus_ms(5_000)).await;
    let mut left = Vec::new();
    for id in &ended {
        left.push(at.store.views.messages(id, 0, 100).await.unwrap().len());
    }
    assert_eq!(left, [1, 0, 0]);
}
