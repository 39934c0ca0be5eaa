//! Tenants: a call with a tenant reads and changes rows of that tenant only; a call without one reads all.

use super::backend::Opened;
use super::jobs::{NOW, agent, complete, plain};
use super::on_every_store;
use turnstone_domain::terms::RateLimit;
use turnstone_domain::{JobId, JobState, NewJob, Terms};
use turnstone_store::{CancelOutcome, JobFilter, JobKind, Page, Ring, StoreError, TenantLimits, TenantSetup};

const EVERYTHING: Page = Page { limit: 100, offset: 0 };

fn of(tenant: &str, job: NewJob) -> NewJob {
    let mut job = job;
    job.terms.tenant = Some(tenant.to_owned());
    job
}

/// Enqueues a job of alpha, one of beta, and one without a tenant.
async fn three(at: &Opened) -> [JobId; 3] {
    let jobs = [of("alpha", plain(0)), of("beta", plain(0)), plain(0)];
    let ids = jobs.clone().map(|job| job.id);
    at.store.intake.push(jobs.into()).await.unwrap();
    ids
}

async fn another_tenants_job_is_not_found(at: &Opened) {
    let [alphas, betas, nobodys] = three(at).await;
    let sees = async |tenant: Option<&str>| {
        let mut seen = Vec::new();
        for id in [&alphas, &betas, &nobodys] {
            seen.push(at.store.views.job_of(id, tenant).await.unwrap().is_some());
        }
        seen
    };
    assert_eq!(sees(None).await, [true, true, true]);
    assert_eq!(sees(Some("alpha")).await, [true, false, false]);
    assert_eq!(sees(Some("beta")).await, [false, true, false]);
    assert_eq!(sees(Some("gamma")).await, [false, false, false]);
}

async fn a_tenant_cannot_cancel_another_tenants_job(at: &Opened) {
    let [alphas, ..] = three(at).await;
    let cancel = at.store.intake.cancel_of(&alphas, Some("beta"), NOW).await.unwrap();
    assert_eq!(cancel, CancelOutcome::NotFound);
    assert_eq!(at.state(&alphas).await, JobState::Available);
    assert_eq!(at.events(&alphas).await.len(), 1, "it is unchanged");
    let cancel = at.store.intake.cancel_of(&alphas, Some("alpha"), NOW).await.unwrap();
    assert_eq!(cancel, CancelOutcome::Cancelled { previous: JobState::Available });
}

async fn lists_and_counts_are_per_tenant(at: &Opened) {
    let [alphas, ..] = three(at).await;
    let filter = JobFilter { tenant: Some("alpha".into()), ..JobFilter::default() };
    let (jobs, total) = at.store.views.jobs(&filter, EVERYTHING).await.unwrap();
    assert_eq!((jobs.into_iter().map(|job| job.id).collect::<Vec<_>>(), total), (vec![alphas], 1));
    let counts = at.store.views.counts_of(None, Some("alpha")).await.unwrap();
    assert_eq!(counts, [(JobState::Available, 1)]);
    assert_eq!(at.store.views.counts_of(Some("other"), Some("alpha")).await.unwrap(), []);
    assert_eq!(at.store.views.counts_of(Some("q"), None).await.unwrap(), [(JobState::Available, 3)]);
}

async fn an_engagement_belongs_to_its_tenant(at: &Opened) {
    let job = of("alpha", agent(None));
    let id = job.engagement.as_ref().unwrap().id.clone();
    at.store.intake.push(vec![job]).await.unwrap();
    let seen =
        async |tenant: Option<&str>| at.store.views.engagement_of(&id, tenant).await.unwrap().is_some();
    assert_eq!((seen(None).await, seen(Some("alpha")).await, seen(Some("beta")).await), (true, true, false));
}

/// OJS rate limiting §3, OJS multi-tenancy §6: one key in two tenants is two limits.
async fn a_key_of_one_tenant_is_not_that_of_another(at: &Opened) {
    let named = |tenant: Option<&str>| {
        let limit = RateLimit { key: Some("api".into()), concurrency: Some(1), ..RateLimit::default() };
        let terms = Terms { tenant: tenant.map(str::to_owned), rate_limit: Some(limit), ..Terms::default() };
        NewJob { terms, ..plain(0) }
    };
    let whose = [Some("alpha"), Some("beta"), None];
    at.store.intake.push(whose.into_iter().chain(whose).map(named).collect()).await.unwrap();
    assert_eq!(at.claim(JobKind::Plain, 9).await.len(), 3, "one of each");
    for tenant in whose {
        let limit = at.store.queues.limit(tenant, "api").await.unwrap().unwrap();
        assert_eq!((limit.name.as_str(), limit.tenant.as_deref(), limit.active), ("api", tenant, 1));
    }
    assert!(at.store.queues.limit(Some("gamma"), "api").await.unwrap().is_none());
    let (own, total) = at.store.queues.limits(Some("alpha"), EVERYTHING).await.unwrap();
    assert_eq!((own.len(), total), (1, 1));
    assert_eq!(at.store.queues.limits(None, EVERYTHING).await.unwrap().1, 3);
    let two = RateLimit { concurrency: Some(2), ..RateLimit::default() };
    at.store.queues.override_limit(Some("beta"), "api", Some(two)).await.unwrap();
    let more = at.claim(JobKind::Plain, 9).await;
    assert_eq!(more.len(), 1);
    assert_eq!(at.job(&more[0].job).await.tenant.as_deref(), Some("beta"));
}

fn setup(tenant: &str, limits: TenantLimits) -> TenantSetup {
    TenantSetup { tenant: tenant.to_owned(), limits, reason: None, created_at: NOW, updated_at: NOW }
}

/// OJS multi-tenancy MT-003.
async fn a_tenant_runs_up_to_its_limit_and_blocks_no_other(at: &Opened) {
    let limits = TenantLimits { max_concurrency: Some(2), ..TenantLimits::default() };
    at.store.tenants.set_up(setup("alpha", limits)).await.unwrap();
    let mut jobs: Vec<NewJob> = (0..50).map(|_| of("alpha", plain(5))).collect();
    jobs.extend([of("beta", plain(0)), plain(0)]);
    at.store.intake.push(jobs).await.unwrap();
    let held = at.claim(JobKind::Plain, 9).await;
    assert_eq!(held.len(), 4, "two of alpha's, and those behind all of its others");
    assert!(at.claim(JobKind::Plain, 9).await.is_empty());
    let mut rings = at.store.doorbell.listen();
    at.settle(&held[0].lease, complete()).await;
    assert!(std::iter::from_fn(|| rings.try_recv().ok()).any(|ring| ring == Ring::Available));
    assert_eq!(at.claim(JobKind::Plain, 9).await.len(), 1);
    assert!(at.store.tenants.forget_limits("alpha").await.unwrap());
    assert!(!at.store.tenants.forget_limits("alpha").await.unwrap());
    assert_eq!(at.claim(JobKind::Plain, 9).await.len(), 9);
}

/// OJS multi-tenancy MT-004.
async fn a_tenants_queue_depth_is_counted_across_processes(at: &Opened) {
    let limits = TenantLimits { max_queue_depth: Some(10), ..TenantLimits::default() };
    at.store.tenants.set_up(setup("alpha", limits)).await.unwrap();
    let other = at.place.open().await;
    let pushes = (0..20).map(|n| {
        let store = if n % 2 == 0 { &at.store } else { &other };
        store.intake.push(vec![of("alpha", plain(0)), of("beta", plain(0))])
    });
    let pushed = futures::future::join_all(pushes).await;
    assert_eq!(pushed.iter().filter(|pushed| pushed.is_ok()).count(), 10);
    let refused = pushed.into_iter().find_map(Result::err).unwrap();
    let expected = matches!(&refused, StoreError::TenantLimit { tenant, limit: "max_queue_depth", current: 10, maximum: 10 } if tenant == "alpha");
    assert!(expected, "{refused:?}");
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 20, "each push is taken whole or not at all");
}

on_every_store![
    another_tenants_job_is_not_found,
    a_tenant_cannot_cancel_another_tenants_job,
    lists_and_counts_are_per_tenant,
    an_engagement_belongs_to_its_tenant,
    a_key_of_one_tenant_is_not_that_of_another,
    a_tenant_runs_up_to_its_limit_and_blocks_no_other,
    a_tenants_queue_depth_is_counted_across_processes,
];
