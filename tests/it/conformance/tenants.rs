//! Tenants: whoever names one sees and changes that tenant's things alone; whoever names none sees all.

use super::backend::Opened;
use super::jobs::{NOW, agent, plain};
use super::on_both;
use turnstone_domain::{JobId, JobState, NewJob};
use turnstone_store::{CancelOutcome, JobFilter, Page};

const EVERYTHING: Page = Page { limit: 100, offset: 0 };

fn of(tenant: &str, job: NewJob) -> NewJob {
    let mut job = job;
    job.terms.tenant = Some(tenant.to_owned());
    job
}

/// A job of alpha's, one of beta's and one of nobody's in particular.
async fn three(at: &Opened) -> [JobId; 3] {
    let jobs = [of("alpha", plain(0)), of("beta", plain(0)), plain(0)];
    let ids = jobs.clone().map(|job| job.id);
    at.store.intake.push(jobs.into()).await.unwrap();
    ids
}

async fn another_tenants_job_is_not_there(at: &Opened) {
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

async fn nobody_cancels_another_tenants_job(at: &Opened) {
    let [alphas, ..] = three(at).await;
    let cancel = at.store.intake.cancel_of(&alphas, Some("beta"), NOW).await.unwrap();
    assert_eq!(cancel, CancelOutcome::NotFound);
    assert_eq!(at.state(&alphas).await, JobState::Available);
    assert_eq!(at.events(&alphas).await.len(), 1, "nothing happened to it");
    let cancel = at.store.intake.cancel_of(&alphas, Some("alpha"), NOW).await.unwrap();
    assert_eq!(cancel, CancelOutcome::Cancelled { previous: JobState::Available });
}

async fn lists_and_counts_are_a_tenants_own(at: &Opened) {
    let [alphas, ..] = three(at).await;
    let filter = JobFilter { tenant: Some("alpha".into()), ..JobFilter::default() };
    let (jobs, total) = at.store.views.jobs(&filter, EVERYTHING).await.unwrap();
    assert_eq!((jobs.into_iter().map(|job| job.id).collect::<Vec<_>>(), total), (vec![alphas], 1));
    let counts = at.store.views.counts_of(None, Some("alpha")).await.unwrap();
    assert_eq!(counts, [(JobState::Available, 1)]);
    assert_eq!(at.store.views.counts_of(Some("other"), Some("alpha")).await.unwrap(), []);
    assert_eq!(at.store.views.counts_of(Some("q"), None).await.unwrap(), [(JobState::Available, 3)]);
}

async fn an_engagement_is_its_tenants(at: &Opened) {
    let job = of("alpha", agent(None));
    let id = job.engagement.as_ref().unwrap().id.clone();
    at.store.intake.push(vec![job]).await.unwrap();
    let seen =
        async |tenant: Option<&str>| at.store.views.engagement_of(&id, tenant).await.unwrap().is_some();
    assert_eq!((seen(None).await, seen(Some("alpha")).await, seen(Some("beta")).await), (true, true, false));
}

on_both![
    another_tenants_job_is_not_there,
    nobody_cancels_another_tenants_job,
    lists_and_counts_are_a_tenants_own,
    an_engagement_is_its_tenants,
];
