//! PgBouncer in transaction mode: no statement may depend on a session, and notifications do not arrive.

use super::{few, migrated, opened};
use crate::conformance::jobs::{LEASE, NOW, complete, done, nothing, plain, request};
use futures::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{JobId, Phase};
use turnstone_store::limits::{Admission, Limit, LimitKey};
use turnstone_store::{Duty, JobFilter, JobKind, Page, PostgresOptions, PostgresStore, Store};
use turnstone_tests::servers::{PgBouncer, Postgres};
use turnstone_tests::{Fleet, Reply, model_server, wait, worker};

/// Returns the options of a process behind the pooler.
fn pooled(bouncer: &PgBouncer) -> PostgresOptions {
    PostgresOptions { transaction_pooler: true, connections: 4, ..PostgresOptions::new(bouncer.url()) }
}

fn two_tools(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"query": "a"})),
        1 => Reply::call("book", json!({"seat": 7})),
        _ => Reply::text("booked"),
    }
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_pgbouncer), ignore = "needs PostgreSQL and PgBouncer")]
async fn an_agent_job_runs_through_a_pooler_and_starts_without_a_notification() {
    let postgres = Postgres::shared().await;
    let database = migrated().await;
    let bouncer = PgBouncer::start(postgres, &database).await;
    let options = pooled(&bouncer);
    let mut fleet = Fleet::builder()
        .workers(0)
        .model(two_tools)
        .on_database(database)
        .reached_by(options.clone())
        .start()
        .await;
    // The worker has a store of its own, like a separate process: the API's notifications do not reach it.
    let apart = opened(&options).await;
    let (models, tools) = (fleet.models.url.clone(), fleet.tools.url.clone());
    let clock = Arc::new(fleet.clock.clone());
    let store = (Arc::clone(&apart.ledger), apart.doorbell.clone());
    fleet.add_worker_with(4, |_| worker::deps("apart", store, clock, &models, &tools, 4));

    let job = json!({"type": "agent.book", "args": ["book a seat"], "ext_agent_model": "m",
                     "ext_agent_token_budget": 1000, "ext_agent_tools": [{"name": "search"}, {"name": "book"}]});
    let id = fleet.push(&job).await;
    let job = fleet.settled(&id).await;
    assert_eq!(job["state"], "completed", "{job:#}");
    let called: Vec<String> = fleet.tools.calls().into_iter().map(|call| call.tool).collect();
    assert_eq!(called, ["search", "book"]);
    fleet.tick().await;
    fleet.end().await;
}

/// Runs jobs from their push to their end, with every kind of statement in between.
async fn one_life(store: &Store, other: &Store) -> usize {
    let pushed = store.intake.push((0..5).map(|_| plain(0)).collect()).await.unwrap();
    let mut ended = 0;
    for id in pushed.iter().map(|pushed| &pushed.id) {
        assert_eq!(other.views.job(id).await.unwrap().unwrap().id, *id);
    }
    while ended < 5 {
        for held in other.ledger.claim(request(JobKind::Plain, 5 - ended, NOW)).await.unwrap() {
            other.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
            let leases = [held.lease.clone()];
            assert_eq!(other.ledger.extend(&leases, NOW, LEASE).await.unwrap(), Vec::<String>::new());
            assert_eq!(store.ledger.reads().lost(&leases).await.unwrap(), Vec::<String>::new());
            other.ledger.settle(&held.lease, nothing(), complete(), NOW).await.unwrap();
            ended += 1;
        }
        store.upkeep.next_due().await.unwrap();
        store.views.counts(None).await.unwrap();
    }
    ended
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_pgbouncer), ignore = "needs PostgreSQL and PgBouncer")]
async fn many_processes_share_the_connections_of_a_pooler() {
    let postgres = Postgres::shared().await;
    let database = migrated().await;
    let bouncer = PgBouncer::start(postgres, &database).await;
    // More connections than the pooler has to the database, so that each is shared.
    let options = pooled(&bouncer);
    let stores = join_all((0..6).map(|_| opened(&options))).await;
    let lives = (0..48).map(|at: usize| one_life(&stores[at % 6], &stores[(at + 1) % 6]));
    let ended = wait::output("every job ends", join_all(lives)).await;
    assert_eq!(ended.into_iter().sum::<usize>(), 240);
    let page = Page { limit: 1_000, offset: 0 };
    let (jobs, total) = stores[0].views.jobs(&JobFilter::default(), page).await.unwrap();
    let jobs: BTreeSet<JobId> = jobs.into_iter().map(|job| job.id).collect();
    assert_eq!((jobs.len(), total), (240, 240));
    let term = stores[0].upkeep.lead("one", 10_000, NOW).await.unwrap().unwrap();
    assert_eq!(stores[1].upkeep.lead("other", 10_000, NOW).await.unwrap(), None);
    stores[0].upkeep.perform(Duty::Prune { before: NOW }, &term, NOW, 10).await.unwrap();
    let (key, limit) =
        (LimitKey::new("p", "m", "t"), Limit { requests_per_minute: Some(10), tokens_per_minute: None });
    let requested = (0..30_usize).map(|at| stores[at % 6].limits.admit(&key, &limit, 1, NOW));
    let granted =
        join_all(requested).await.into_iter().filter(|a| matches!(a, Ok(Admission::Granted(_)))).count();
    assert!((1..=10).contains(&granted), "{granted} calls were let through");
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_pgbouncer), ignore = "needs PostgreSQL and PgBouncer")]
async fn processes_start_while_others_are_at_work_behind_the_same_pooler() {
    let postgres = Postgres::shared().await;
    let database = migrated().await;
    let bouncer = PgBouncer::start(postgres, &database).await;
    let options = pooled(&bouncer);
    let (one, other) = (opened(&options).await, opened(&options).await);
    let at_work = async { join_all((0..16).map(|_| one_life(&one, &other))).await };
    let starting = async {
        for _ in 0..10 {
            let opened = join_all((0..4).map(|_| PostgresStore::open(&options, Arc::new(SystemIds)))).await;
            let times: Vec<i64> = opened.into_iter().map(|opened| opened.unwrap().1.now().0).collect();
            let apart = times.iter().max().unwrap() - times.iter().min().unwrap();
            assert!(apart < 60_000, "the clocks are {apart} ms apart");
            let findings = PostgresStore::check(&options).await;
            assert!(findings.iter().all(|finding| finding.ok), "{findings:?}");
        }
    };
    let both = Box::pin(async { tokio::join!(at_work, starting) });
    wait::output("every process has started", both).await;
    let unchanged = PostgresStore::migrate(&few(&database.url), &["q".into()]).await.unwrap();
    assert_eq!(unchanged, Vec::<String>::new(), "the migrations go past the pooler");
}
