//! Compares the rows that a store returns with the model.

use super::backend::Opened;
use super::model::{ModelJob, Shown, ShownAgent};
use std::collections::BTreeMap;
use turnstone_domain::{Job, Lease};
use turnstone_store::{JobFilter, Page, ReviewFilter};

const EVERYTHING: Page = Page { limit: 1_000, offset: 0 };

/// Compares every job, the counts per state, what is due next, and which leases hold.
pub async fn compare(
    at: &Opened,
    jobs: &mut [ModelJob],
    given: &[(usize, Lease)],
    lost: &[String],
    context: &str,
) {
    let leases: Vec<Lease> = given.iter().map(|(_, lease)| lease.clone()).collect();
    assert_eq!(
        at.store.ledger.reads().lost(&leases).await.unwrap(),
        lost,
        "which leases are lost after {context}"
    );
    let (listed, total) = at.store.views.jobs(&JobFilter::default(), EVERYTHING).await.unwrap();
    assert_eq!((listed.len(), total), (jobs.len(), jobs.len() as u64), "jobs after {context}");
    // Newest first.
    for (job, model) in listed.into_iter().rev().zip(jobs.iter()) {
        // `lost` returns whether this token has lost its lease.
        let shown = seen(at, job, model.shown.token.clone()).await;
        assert_eq!(shown, model.shown, "after {context}");
    }
    let mut expected = BTreeMap::new();
    for job in jobs.iter() {
        *expected.entry(job.shown.state.as_str()).or_insert(0) += 1;
    }
    let counts = at.store.views.counts(None).await.unwrap();
    let counts: BTreeMap<&str, u64> =
        counts.into_iter().map(|(state, jobs)| (state.as_str(), jobs)).collect();
    assert_eq!(counts, expected, "counts after {context}");
    let due = jobs.iter_mut().filter_map(ModelJob::next_due).min();
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), due, "what is due next after {context}");
}

async fn seen(at: &Opened, job: Job, token: Option<String>) -> Shown {
    let events = at.events(&job.id).await;
    let agent = match &job.agent {
        Some(_) => Some(agent_side(at, &job).await),
        None => None,
    };
    Shown {
        id: job.id,
        state: job.state,
        attempt: job.attempt,
        failures: job.failures,
        run_at: job.run_at,
        started_at: job.started_at,
        ended_at: job.ended_at,
        worker: job.worker_id,
        token,
        retry_delay_ms: job.retry_delay_ms,
        result: job.result,
        errors: job.errors.into_iter().map(|failed| (failed.attempt, failed.error.kind, failed.at)).collect(),
        events,
        agent,
    }
}

async fn agent_side(at: &Opened, job: &Job) -> ShownAgent {
    let views = &at.store.views;
    let side = job.agent.as_ref().unwrap();
    let id = &side.engagement_id;
    let budget = views.budget(id).await.unwrap();
    let checkpoints = views.checkpoints(id, EVERYTHING).await.unwrap();
    let messages = views.messages(id, 0, 1_000).await.unwrap();
    assert!(messages.iter().map(|message| message.seq).eq(1..=messages.len() as i64), "messages have gaps");
    let (engagement, _, latest) = views.engagement(id).await.unwrap().unwrap();
    assert_eq!(latest, job.id);
    let reviews = views.reviews(&ReviewFilter::default(), EVERYTHING).await.unwrap();
    let reviews = reviews.into_iter().filter(|review| review.job_id == job.id);
    ShownAgent {
        turn: side.position.turn,
        turns: engagement.turns,
        tokens_used: side.tokens_used,
        limit: budget.limit,
        settled: budget.settled,
        reserved: budget.reserved,
        checkpoints: checkpoints.into_iter().map(|c| (c.checkpoint.turn, c.checkpoint.phase)).collect(),
        messages: messages.len(),
        reviews: reviews.map(|r| (r.id, r.state, r.deadline_at, r.decided_at)).collect(),
    }
}
