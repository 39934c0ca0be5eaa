//! What operators do, where HTTP does not show enough: agent jobs that are tried again, and an emptied store.

use super::backend::{Opened, Place};
use super::jobs::{LEASE, NOW, agent, complete, discard, done, park, plain, reserve};
use super::on_every_store;
use std::collections::BTreeSet;
use turnstone_domain::retry::OnExhaustion;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{EventName, JobState, NewJob, Overrides, Phase, TurnWrite};
use turnstone_store::{ActionOutcome, Duty, JobKind};

/// What stays when a store is emptied: agents, keys, buckets of providers, and what keeps the fleet together.
const KEPT: [&str; 11] = [
    "_sqlx_migrations",
    "agent_definitions",
    "agents",
    "budget_rules",
    "credentials",
    "data_keys",
    "leaders",
    "rate_limits",
    "server_keys",
    "statistics_mark",
    "writers",
];

fn kept(mut job: NewJob) -> NewJob {
    job.retry.on_exhaustion = OnExhaustion::DeadLetter;
    job
}

async fn a_dead_agent_job_goes_on_where_it_stopped(at: &Opened) {
    let id = at.push(kept(agent(Some(100)))).await;
    let claim = at.claim(JobKind::Agent, 1).await.remove(0);
    let position = Position { turn: 1, tool_turns: 3, ..Position::default() };
    // What it waited for, and how long and how often, was over with its end.
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
    assert_eq!((again.job, engagement.checkpoints.len()), (id, 1), "what it had done is not done again");
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

/// The names of all tables, without the parts of partitioned ones.
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

#[expect(clippy::cognitive_complexity, reason = "one story, told in order")]
async fn an_emptied_store_is_as_new_and_whoever_works_goes_on(at: &Opened) {
    // The texts are what is tested: a table that is added and forgotten there would keep its rows.
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
    // Whoever held a lease has lost it, and the leader still leads.
    assert_eq!(
        at.store.ledger.lost(std::slice::from_ref(&held.lease)).await.unwrap(),
        std::slice::from_ref(&held.lease.token)
    );
    assert!(at.store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.is_err());
    assert_eq!(at.store.upkeep.perform(Duty::PromoteDue, &term, NOW, 10).await.unwrap(), 0);
    // A job with the same id is a new one.
    let mut again = agent(None);
    again.id = held.job.clone();
    at.push(again).await;
    let claim = at.claim(JobKind::Agent, 1).await.remove(0);
    assert_eq!((&claim.job, claim.engagement.as_ref().unwrap().checkpoints.len()), (&held.job, 0));
    assert!(at.store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.is_err());
    at.store.ledger.checkpoint(&claim.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
}

async fn many_resets_beside_many_pushes_and_claims_refuse_nobody_else(at: &Opened) {
    let pushing = async {
        for _ in 0..30 {
            at.store.intake.push(vec![plain(0), agent(None)]).await.unwrap();
        }
    };
    let claiming = async {
        for _ in 0..30 {
            for claim in at.claim(JobKind::Plain, 10).await {
                // It may be gone by now.
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
    a_dead_agent_job_goes_on_where_it_stopped,
    a_job_that_was_dead_counts_each_time_it_ends,
    an_emptied_store_is_as_new_and_whoever_works_goes_on,
    many_resets_beside_many_pushes_and_claims_refuse_nobody_else,
];
