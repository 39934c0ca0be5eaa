//! Jobs wait for queues, limits, budgets, reviewers and delegates that others change and delete meanwhile. Once nothing holds
//! them any more, every job ends: none waits for something that is gone.

use super::backend::{Backend, Opened, open};
use super::budget_waits::call;
use super::budgets::rule;
use super::delegation::child;
use super::jobs::{NOW, agent, complete, park};
use proptest::prelude::*;
use serde_json::Map;
use std::sync::atomic::{AtomicI64, Ordering};
use turnstone_domain::terms::RateLimit;
use turnstone_domain::{AgentDefinition, JobId, NewJob, ReviewId, Settlement, Timestamp, Wait};
use turnstone_store::{
    AgentRemoval, Bulk, Claim, ConfigChange, Decision, Duty, Freeze, JobAction, JobFilter, JobKind,
    LedgerError, NewAgent, NewTenants, QueueLimits, Store,
};

const QUEUES: [&str; 2] = ["a", "b"];
const TENANT: &str = "acme";
const BUDGETS: [&str; 2] = ["fleet", "tenant/acme"];
/// The key of the limit that half of the jobs name.
const KEY: &str = "k";
/// The agent of the delegates.
const SCOUT: &str = "scout";
const JOBS: usize = 10;
/// The milliseconds between two steps.
const STEP_MS: i64 = 700;

/// The end of a job's turn.
#[derive(Clone, Debug)]
enum End {
    Complete,
    ForBudget,
    ForReview,
    ForDelegate,
}

/// One step of a worker or of an operator.
#[derive(Clone, Debug)]
enum Step {
    /// A worker claims as many jobs, and their turns end so.
    Work(usize, End),
    /// A worker claims one job and dies.
    Die,
    Pause(&'static str, bool),
    /// A queue runs one job at a time, or as many as there are.
    Bound(&'static str, bool),
    /// The same for the key.
    Limit(bool),
    Freeze(bool),
    Budget(&'static str, bool),
    /// Registers the agent of the delegates, or removes it.
    Agent(bool),
    /// Deletes the jobs of a queue that have not begun.
    Purge(&'static str),
    Cancel(usize),
    /// Deletes the history of jobs that ended, and definitions without jobs.
    Prune,
}

fn step() -> impl Strategy<Value = Step> {
    let queue = || prop::sample::select(QUEUES.to_vec());
    let end =
        prop_oneof![Just(End::Complete), Just(End::ForBudget), Just(End::ForReview), Just(End::ForDelegate)];
    prop_oneof![
        6 => (1_usize..4, end).prop_map(|(jobs, end)| Step::Work(jobs, end)),
        1 => Just(Step::Die),
        1 => (queue(), any::<bool>()).prop_map(|(queue, on)| Step::Pause(queue, on)),
        2 => (queue(), any::<bool>()).prop_map(|(queue, on)| Step::Bound(queue, on)),
        2 => any::<bool>().prop_map(Step::Limit),
        1 => any::<bool>().prop_map(Step::Freeze),
        2 => (prop::sample::select(BUDGETS.to_vec()), any::<bool>()).prop_map(|(name, on)| Step::Budget(name, on)),
        2 => any::<bool>().prop_map(Step::Agent),
        1 => queue().prop_map(Step::Purge),
        1 => (0..JOBS).prop_map(Step::Cancel),
        1 => Just(Step::Prune),
    ]
}

/// A store with the jobs of a history, and its time.
struct Site {
    at: Opened,
    /// The store of another process, if there can be one.
    other: Option<Store>,
    jobs: Vec<JobId>,
    now: AtomicI64,
}

impl Site {
    async fn begin(backend: Backend) -> Self {
        let at = open(backend).await;
        let other = if backend == Backend::Postgres { Some(at.place.open().await) } else { None };
        let jobs: Vec<NewJob> = (0..JOBS)
            .map(|number| {
                let mut job = NewJob { queue: QUEUES[number % 2].to_owned(), ..agent(None) };
                job.terms.tenant = Some(TENANT.to_owned());
                job.terms.rate_limit = (number % 3 == 0).then(|| RateLimit {
                    key: Some(KEY.to_owned()),
                    concurrency: Some(1),
                    ..RateLimit::default()
                });
                job
            })
            .collect();
        let ids = jobs.iter().map(|job| job.id.clone()).collect();
        at.store.intake.push(jobs).await.unwrap();
        Self { at, other, jobs: ids, now: AtomicI64::new(NOW.0) }
    }

    fn operator(&self) -> &Store {
        self.other.as_ref().unwrap_or(&self.at.store)
    }

    /// Returns a time after all those before.
    fn now(&self) -> Timestamp {
        Timestamp(self.now.fetch_add(STEP_MS, Ordering::SeqCst))
    }

    async fn claims(&self, jobs: usize) -> Vec<Claim> {
        self.at.claim_at(JobKind::Agent, jobs, self.now()).await
    }

    async fn settle(&self, claim: &Claim, end: Settlement) {
        let settled =
            self.at.store.ledger.settle(&claim.lease, super::jobs::nothing(), end, self.now()).await;
        // An operator may have cancelled the job meanwhile.
        assert!(matches!(settled, Ok(_) | Err(LedgerError::LeaseLost(_))), "{settled:?}");
    }

    async fn work(&self, jobs: usize, end: &End) {
        for claim in self.claims(jobs).await {
            match end {
                End::Complete => self.settle(&claim, complete()).await,
                End::ForReview => self.settle(&claim, park(None)).await,
                End::ForDelegate => {
                    self.settle(&claim, Settlement::Park { wait: Wait::Children(vec![child(None)]) }).await;
                }
                End::ForBudget => {
                    if call(&self.at.store, &claim, &BUDGETS).await {
                        self.settle(&claim, complete()).await;
                    }
                }
            }
        }
    }

    async fn bound(&self, queue: &str, is_bound: bool) {
        let limits = QueueLimits { concurrency: is_bound.then_some(1), ..QueueLimits::default() };
        let change = ConfigChange { members: Map::new(), limits: Some(limits) };
        self.operator().queues.configure(queue, change, self.now()).await.unwrap();
    }

    async fn limit(&self, most: i64) {
        let limit = RateLimit { concurrency: Some(most), ..RateLimit::default() };
        self.operator().queues.override_limit(Some(TENANT), KEY, Some(limit)).await.unwrap();
    }

    async fn freeze(&self, holds: bool) {
        let freezes = &self.operator().freezes;
        if !holds {
            freezes.lift(Some(TENANT)).await.unwrap();
            return;
        }
        let freeze = Freeze {
            tenant: Some(TENANT.to_owned()),
            reason: Some("test".to_owned()),
            frozen_by: "ann".to_owned(),
            frozen_at: self.now(),
        };
        freezes.set(freeze).await.unwrap();
    }

    async fn agent(&self, is_registered: bool) {
        let (intake, at) = (&self.operator().intake, self.now());
        if is_registered {
            let definition = AgentDefinition { name: SCOUT.to_owned(), ..AgentDefinition::default() };
            let new = NewAgent { definition, source: String::new(), tenants: NewTenants::default(), at };
            intake.register_agent(new).await.unwrap();
        } else {
            let removal = AgentRemoval { name: SCOUT.to_owned(), even_if_named: true, at };
            intake.remove_agent(removal).await.unwrap();
        }
    }

    async fn purge(&self, queue: &str) {
        let filter = JobFilter { queue: Some(queue.to_owned()), ..JobFilter::default() };
        let bulk = Bulk {
            action: JobAction::Delete,
            dead_letters: false,
            states: Vec::new(),
            filter,
            most: 3,
            dry_run: false,
            at: self.now(),
        };
        self.operator().operate.bulk(bulk).await.unwrap();
    }

    async fn perform(&self, step: &Step) {
        let operator = self.operator();
        match step {
            Step::Work(jobs, end) => self.work(*jobs, end).await,
            Step::Die => drop(self.claims(1).await),
            Step::Pause(queue, on) => drop(operator.queues.pause(queue, *on, self.now()).await.unwrap()),
            Step::Bound(queue, is_bound) => self.bound(queue, *is_bound).await,
            Step::Limit(true) => self.limit(2).await,
            Step::Limit(false) => {
                operator.queues.override_limit(Some(TENANT), KEY, None).await.unwrap();
            }
            Step::Freeze(on) => self.freeze(*on).await,
            Step::Budget(name, true) => {
                let set = rule(name, |rule| rule.tokens = Some(1));
                operator.budgets.set(set, None, self.now()).await.unwrap();
            }
            Step::Budget(name, false) => drop(operator.budgets.forget(name, None, self.now()).await.unwrap()),
            Step::Agent(is_registered) => self.agent(*is_registered).await,
            Step::Purge(queue) => self.purge(queue).await,
            Step::Cancel(number) => {
                operator.intake.cancel(&self.jobs[*number], self.now()).await.unwrap();
            }
            Step::Prune => drop(self.duty(Duty::Prune { before: self.now() }).await),
        }
    }

    async fn duty(&self, duty: Duty) -> usize {
        self.at.perform(duty, self.now()).await
    }

    /// Takes away all that may hold a job.
    async fn free(&self) {
        for queue in QUEUES {
            self.perform(&Step::Pause(queue, false)).await;
            self.perform(&Step::Bound(queue, false)).await;
        }
        for name in BUDGETS {
            self.perform(&Step::Budget(name, false)).await;
        }
        self.perform(&Step::Limit(false)).await;
        self.perform(&Step::Freeze(false)).await;
        self.perform(&Step::Agent(false)).await;
        let open = "SELECT id FROM reviews WHERE state = 'open'";
        for review in self.at.place.texts(open).await {
            let decision = Decision {
                approve: true,
                by: "ann".into(),
                principal: None,
                reported: None,
                reason: None,
                at: self.now(),
            };
            self.at.store.intake.decide_review(&ReviewId::from(review), decision).await.unwrap();
        }
    }

    /// Works until no job is left that can run.
    async fn finish(&self) {
        for _ in 0..60 {
            self.now.fetch_add(10_000, Ordering::SeqCst);
            self.duty(Duty::ReapExpired).await;
            self.duty(Duty::PromoteDue).await;
            self.work(1_000, &End::Complete).await;
        }
    }
}

/// The jobs that have not ended.
const LEFT: &str =
    "SELECT state || ' in ' || queue FROM jobs WHERE state NOT IN ('completed', 'cancelled', 'discarded')";

async fn history(backend: Backend, groups: &[Vec<Step>]) {
    let site = Site::begin(backend).await;
    for group in groups {
        futures::future::join_all(group.iter().map(|step| site.perform(step))).await;
    }
    site.free().await;
    site.finish().await;
    let left = site.at.place.texts(LEFT).await;
    assert!(left.is_empty(), "{left:?} after {groups:?}");
}

fn run(backend: Backend, groups: &[Vec<Step>]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(history(backend, groups));
}

fn groups() -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop::collection::vec(prop::collection::vec(step(), 1..5), 1..9)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 60, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(8))]

    #[test]
    fn no_job_waits_for_something_that_is_gone_on_sqlite(groups in groups()) {
        run(Backend::Sqlite, &groups);
    }

    #[test]
    #[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
    fn no_job_waits_for_something_that_is_gone_on_postgres(groups in groups()) {
        run(Backend::Postgres, &groups);
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    #[ignore = "long: 150 histories on each store"]
    fn no_job_waits_for_something_that_is_gone(groups in groups()) {
        run(Backend::Sqlite, &groups);
        run(Backend::Postgres, &groups);
    }
}
