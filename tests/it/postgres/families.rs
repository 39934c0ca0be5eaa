//! Concurrent ends within a family of jobs, on a real PostgreSQL: the family ends as one.

use super::{few, migrated, opened};
use crate::conformance::jobs::{LEASE, NOW, agent, complete, nothing, request};
use serde_json::json;
use turnstone_domain::agent::delegation::DelegationMode;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{
    AgentDefinition, Ids, JobId, JobState, NewChild, NewJob, RawJson, RawObject, Settlement, Timestamp, Wait,
};
use turnstone_store::{Duty, JobKind};

const ROUNDS: usize = 60;

fn child() -> NewChild {
    NewChild {
        job: JobId(SystemIds.next()),
        engagement: SystemIds.next().into(),
        agent: Box::new(AgentDefinition { name: "scout".into(), ..AgentDefinition::default() }),
        call_id: SystemIds.next().into(),
        turn: 1,
        mode: DelegationMode::Parallel,
        args: RawJson::of(&json!(["look"])),
        meta: RawObject::new(),
        timeout_ms: None,
        jobs: 1,
        max_jobs_per_tree: 1_000,
        review: None,
    }
}

/// A parent expires, which ends its children, while those end by themselves, which wakes their parent: in each round
/// both happen at once. The database never has to resolve a deadlock, and the family ends as one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_parent_expires_while_its_children_end() {
    let database = migrated().await;
    let options = few(&database.url);
    let (one, other) = (opened(&options).await, opened(&options).await);
    let mut now = NOW;
    let term = other.upkeep.lead("s", 100_000_000, now).await.unwrap().unwrap();
    for round in 0..ROUNDS {
        let expires_at = Some(Timestamp(now.0 + 1));
        let parent = NewJob { expires_at, created_at: now, run_at: now, ..agent(Some(1_000)) };
        let id = one.intake.push(vec![parent]).await.unwrap().remove(0).id;
        let held = one.ledger.claim(request(JobKind::Agent, 1, now)).await.unwrap().remove(0);
        let children: Vec<NewChild> = (0..4).map(|_| child()).collect();
        let park = Settlement::Park { wait: Wait::Children(children) };
        // The parent has expired when they begin; the children have no deadline of their own.
        let late = Timestamp(now.0 + 1);
        one.ledger.settle(&held.lease, nothing(), park, late).await.unwrap();
        let claims = one.ledger.claim(request(JobKind::Agent, 4, late)).await.unwrap();
        assert_eq!(claims.len(), 4);
        let ends = claims.iter().map(|claim| one.ledger.settle(&claim.lease, nothing(), complete(), late));
        let expiry = other.upkeep.perform(Duty::ExpireJobs, &term, late, 100);
        let (ended, expired) = tokio::join!(futures::future::join_all(ends), expiry);
        expired.unwrap();
        // A child that was cancelled with the parent has lost its lease.
        let cancelled = ended.iter().filter(|end| end.is_err()).count();
        let state = one.views.job(&id).await.unwrap().unwrap().state;
        let all_ended = other.upkeep.perform(Duty::ExpireJobs, &term, late, 100).await.unwrap();
        let state = if all_ended > 0 { JobState::Discarded } else { state };
        assert_eq!(state, JobState::Discarded, "round {round}, {cancelled} cancelled");
        for claim in &claims {
            let child = one.views.job(&claim.job).await.unwrap().unwrap();
            assert!(child.state.is_terminal(), "round {round}: {:?}", child.state);
        }
        now = Timestamp(now.0 + LEASE * 2);
    }
}
