//! Operations that HTTP does not expose in full: agent jobs that are retried, and an emptied store.

use super::backend::{Opened, Place};
use super::jobs::{LEASE, NOW, agent, complete, discard, done, park, plain, reserve};
use super::on_every_store;
use std::collections::BTreeSet;
use turnstone_domain::retry::OnExhaustion;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{EventName, JobState, NewJob, Overrides, Phase, TurnWrite};
use turnstone_store::{ActionOutcome, Duty, JobKind};

/// The tables that a reset keeps: agents, keys, the audit, freezes, buckets of providers, and the coordination of the fleet.
const KEPT: [&str; 17] = [
    "_sqlx_migrations",
    "agent_definitions",
    "agents",
    "api_keys",
    "audit_entries",
    "audit_heads",
    "budget_rules",
    "credentials",
    "feed_order",
    "data_keys",
    "freezes",
    "leaders",
    "rate_limits",
    "registered_digests",
    "server_keys",
    "statistics_mark",
    "writers",
];

fn kept(mut job: NewJob) -> NewJob {
    job.retry.on_exhaustion = OnExhaustion::DeadLetter;
    job
}

async fn a_retried_dead_agent_job_resumes_at_its_checkpoint(at: &Opened) {
    let id = at.push(kept(agent(Some(100)))).await;
    let claim = at.claim(JobKind::Agent, 1).await.remove(0);
    let position = Position { turn: 1, tool_turns: 3, ..Position::default() };
    // The wait and the number of outages ended with the job.
    let waited = Position { raise_until: Some(NOW), outages: 3, ..position.clone() };
    let write = TurnWrite { position: Some(waited), ..done(Phase::Init) };
    at.store.ledger.checkpoint(&claim.lease, write, NOW, LEASE).await.unwrap();
    at.store.ledger.checkpoint(&claim.lease, reserve(40), NOW, LEASE).await.unwrap();
    at.settle(&claim.lease, discard()).await;
    let outcome = at.store.operate.retry(&id, None, true, Overrides::default(), NOW).await.unwrap();
    assert_eq!(outcome, ActionOutcome::Done { previous: JobState::Discarded });
    let job = at.job(&id).await;
    assert_eq!((job.state, job.attempt, job.failures, job.errors.len()), (JobState::Available, 0, 0, 0));
    assert_eq!((job.ended_at, job.started_at, job.agent.unwrap().position), (None, None, position));
    assert_eq!(at.events(&id).await.last(), Some(&EventName::JobAvailable));
    let again = at.claim(JobKind::Agent, 1).await.remove(0);
    let engagement = again.engagement.unwrap();
    assert_eq!((again.job, engagement.checkpoints.len()), (id, 1), "its committed phases are not repeated");
    assert_eq!(engagement.budget.reserved, 0);
}

async fn a_job_that_was_dead_counts_each_time_it_ends(at: &Opened) {
    let id = at.push(kept(plain(0))).await;
    for _ in 0..2 {
        let claim = at.claim(JobKind::Plain, 1).await.remove(0);
        at.settle(&claim.lease, discard()).await;
        at.store.operate.retry(&id, None, true, Overrides::default(), NOW).await.unwrap();
    }
    let claim = at.claim(JobKind::Plain, 1).await.remove(0);
    at.settle(&claim.lease, complete()).await;
    assert_eq!(at.store.operate.ended(None, NOW).await.unwrap(), [(JobState::Completed, 1)]);
    let outcome = at.store.operate.retry(&id, None, false, Overrides::default(), NOW).await.unwrap();
    assert_eq!(outcome, ActionOutcome::Refused(JobState::Completed));
}

/// Returns the names of all tables, without partitions.
async fn tables(place: &Place) -> BTreeSet<String> {
    let sql = match place {
        Place::Sqlite(_) => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
        Place::Postgres(_) => {
            "SELECT tablename::text FROM pg_tables JOIN pg_class ON relname = tablename AND NOT relispartition \
             WHERE schemaname = 'public'"
        }
    };
    place.texts(sql).await.into_iter().collect()
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_reset_store_is_empty_and_its_workers_continue(at: &Opened) {
    // The SQL text itself is tested: a new table that is missing in it would keep its rows.
    let text = match at.place {
        Place::Sqlite(_) => include_str!("../../../shared/store/sql/sqlite/delete_everything.sql"),
        Place::Postgres(_) => include_str!("../../../shared/store/sql/postgres/delete_everything.sql"),
    };
    for table in tables(&at.place).await {
        let statements = text.lines().filter(|line| !line.starts_with("--"));
        let mut words = statements.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
        let emptied = words.any(|word| word == table);
        assert_ne!(emptied, KEPT.contains(&table.as_str()), "{table} is either emptied or kept");
    }

    let term = at.term().await;
    let (held, parked) = (at.held(Some(100)).await, at.held(None).await);
    at.store.ledger.checkpoint(&held.lease, reserve(10), NOW, LEASE).await.unwrap();
    at.settle(&parked.lease, park(None)).await;
    let mut tenants = kept(plain(0));
    tenants.terms.tenant = Some("alpha".into());
    at.push(NewJob { queue: "another".into(), ..tenants }).await;
    at.store.operate.reset().await.unwrap();

    assert_eq!(at.store.views.counts(None).await.unwrap(), []);
    assert_eq!(at.store.views.queues().await.unwrap(), ["ai-agents", "default"]);
    for table in
        tables(&at.place).await.iter().filter(|name| !KEPT.contains(&name.as_str()) && *name != "queues")
    {
        assert_eq!(at.query(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    // Every lease is lost, and the leader still leads.
    assert_eq!(
        at.store.ledger.reads().lost(std::slice::from_ref(&held.lease)).await.unwrap(),
        std::slice::from_ref(&held.lease.token)
    );
    assert!(at.store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.is_err());
    assert_eq!(at.store.upkeep.perform(Duty::PromoteDue, &term, NOW, 10).await.unwrap(), 0);
    // The id can be used again.
    let mut again = agent(None);
    again.id = held.job.clone();
    at.push(again).await;
    let claim = at.claim(JobKind::Agent, 1).await.remove(0);
    assert_eq!((&claim.job, claim.engagement.as_ref().unwrap().checkpoints.len()), (&held.job, 0));
    assert!(at.store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.is_err());
    at.store.ledger.checkpoint(&claim.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
}

async fn resets_refuse_no_concurrent_push_or_claim(at: &Opened) {
    let pushing = async {
        for _ in 0..30 {
            at.store.intake.push(vec![plain(0), agent(None)]).await.unwrap();
        }
    };
    let claiming = async {
        for _ in 0..30 {
            for claim in at.claim(JobKind::Plain, 10).await {
                // The lease may be lost by now.
                let _ = at.store.ledger.settle(&claim.lease, super::jobs::nothing(), complete(), NOW).await;
            }
        }
    };
    let resetting = async {
        for _ in 0..15 {
            at.store.operate.reset().await.unwrap();
        }
    };
    tokio::join!(pushing, claiming, resetting);
    at.store.operate.reset().await.unwrap();
    assert_eq!(
        at.query("SELECT count(*) FROM jobs").await + at.query("SELECT count(*) FROM journal").await,
        0
    );
}

on_every_store![
    a_retried_dead_agent_job_resumes_at_its_checkpoint,
    a_job_that_was_dead_counts_each_time_it_ends,
    a_reset_store_is_empty_and_its_workers_continue,
    resets_refuse_no_concurrent_push_or_claim,
];
