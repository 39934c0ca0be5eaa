//! The time until a lease that was ended from outside ends its turn, on a paused clock.

use super::{Deps, LeaseKeeper};
use crate::WorkerOptions;
use crate::model::Providers;
use crate::state::signals::Signal;
use crate::tool::Toolbox;
use async_trait::async_trait;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use turnstone_domain::agent::FanOutRules;
use turnstone_domain::artifact::{Artifact, ArtifactLimits};
use turnstone_domain::budget::OnExceed;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::memory::Exchange;
use turnstone_domain::session_state::{Scope, StateSnapshot};
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{
    AgentDefinition, ArtifactId, CallId, EngagementId, JobId, Lease, Settlement, SystemClock, Timestamp,
    TurnWrite,
};
use turnstone_store::{
    Claim, ClaimRequest, Committed, Directive, Doorbell, Ledger, LedgerError, LedgerReads, Recall, Ring,
    Standing, StoreError, WorkerBeat,
};

/// The bound in `docs/GUARANTEES.md`.
const SECOND: Duration = Duration::from_secs(1);
const TOKEN: &str = "token";

/// A ledger with the leases that were ended. It refuses everything but queries about leases.
#[derive(Default)]
struct Revocations(Mutex<Vec<String>>);

impl Revocations {
    fn revoke(&self) {
        self.0.lock().unwrap().push(TOKEN.to_owned());
    }
}

#[async_trait]
impl Ledger for Revocations {
    async fn extend(&self, _: &[Lease], _: Timestamp, _: i64) -> Result<Vec<String>, StoreError> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn claim(&self, _: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        Err(StoreError::Closed)
    }

    async fn checkpoint(
        &self,
        _: &Lease,
        _: TurnWrite,
        _: Timestamp,
        _: i64,
    ) -> Result<Committed, LedgerError> {
        Err(StoreError::Closed.into())
    }

    async fn settle(&self, _: &Lease, _: TurnWrite, _: Settlement, _: Timestamp) -> Result<(), LedgerError> {
        Err(StoreError::Closed.into())
    }

    async fn release(&self, _: &[Lease], _: Timestamp) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }

    async fn beat(&self, _: WorkerBeat, _: i64) -> Result<Option<Directive>, StoreError> {
        Err(StoreError::Closed)
    }

    async fn leave(&self, _: &str, _: &str) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }

    fn reads(&self) -> &dyn LedgerReads {
        self
    }
}

#[async_trait]
impl LedgerReads for Revocations {
    async fn standing(&self, _: &[Lease]) -> Result<Standing, StoreError> {
        Ok(Standing { lost: self.0.lock().unwrap().clone(), ..Standing::default() })
    }

    async fn most_urgent(&self, _: &[String]) -> Result<Option<i64>, StoreError> {
        Err(StoreError::Closed)
    }

    async fn state(&self, _: &Scope, _: Timestamp) -> Result<StateSnapshot, StoreError> {
        Err(StoreError::Closed)
    }

    async fn artifacts_of(&self, _: &EngagementId) -> Result<Vec<Artifact>, StoreError> {
        Err(StoreError::Closed)
    }

    async fn artifact_bytes(&self, _: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        Err(StoreError::Closed)
    }

    async fn agents(&self, _: &[String], _: Option<&str>) -> Result<Vec<AgentDefinition>, StoreError> {
        Err(StoreError::Closed)
    }

    async fn recorded_call(&self, _: &JobId, _: &CallId) -> Result<Option<ToolCall>, StoreError> {
        Err(StoreError::Closed)
    }

    async fn memories(&self, _: &JobId, _: &str) -> Result<Vec<Exchange>, StoreError> {
        Err(StoreError::Closed)
    }

    async fn persisted(&self, _: &JobId, _: i64, _: i64) -> Result<Vec<serde_json::Value>, StoreError> {
        Err(StoreError::Closed)
    }

    async fn recall(&self, _: &JobId, _: i64, _: u32, _: bool) -> Result<Recall, StoreError> {
        Err(StoreError::Closed)
    }
}

/// Returns a keeper over this ledger, with the product's default duration of a lease.
fn keeper(ledger: &Arc<Revocations>, doorbell: &Doorbell) -> Arc<LeaseKeeper> {
    let options = WorkerOptions {
        worker_id: "w".to_owned(),
        queues: Vec::new(),
        slots: 2,
        lease: Duration::from_secs(15),
        drain_grace: Duration::ZERO,
        model_timeout: Duration::from_secs(600),
        max_tokens: 1,
        on_context_overflow: crate::options::OnContextOverflow::default(),
        on_exceed: OnExceed::default(),
        raise_wait: None,
        review_deadline: None,
        fan_out: FanOutRules::default(),
        artifacts: ArtifactLimits::default(),
    };
    let store = (Arc::clone(ledger) as _, doorbell.clone());
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds));
    let deps = Deps::new(store, clock, ids, Providers::default(), Toolbox::default(), options);
    LeaseKeeper::start(Arc::new(deps), CancellationToken::new())
}

/// Holds a lease for `held_ms`, revokes it, and expects the signal within a second. `rings` are sent
/// meanwhile, one every 10 ms.
async fn noticed(held_ms: u64, rings: Option<Ring>) {
    let (ledger, doorbell) = (Arc::new(Revocations::default()), Doorbell::default());
    let keeper = keeper(&ledger, &doorbell);
    let permit = Arc::new(Semaphore::new(2)).try_acquire_owned().unwrap();
    let lease = Lease { job: JobId("j".into()), token: TOKEN.into(), expires_at: Timestamp(i64::MAX) };
    let slot = keeper.keep(lease, 0, permit);
    let signals = slot.signals();
    let ringing = async {
        let mut every = tokio::time::interval(Duration::from_millis(10));
        loop {
            every.tick().await;
            rings.iter().cloned().for_each(|ring| doorbell.ring(ring));
        }
    };
    let revocation = async {
        let early = timeout(Duration::from_millis(held_ms), signals.any_of(&[Signal::Revoked])).await;
        assert!(early.is_err(), "a valid lease is given up");
        ledger.revoke();
        let reported = timeout(SECOND, signals.any_of(&[Signal::Revoked])).await;
        assert!(
            reported.is_ok(),
            "a lease that was ended {held_ms} ms after its claim is held for another second"
        );
    };
    tokio::select! {
        () = revocation => {}
        () = ringing => {}
    }
    assert!(!signals.is_raised(Signal::Lost), "the lease was ended on purpose and did not run out");
    slot.done();
}

/// Moments around the checks every half second and the extensions every five seconds.
const HELD_MS: [u64; 9] = [1, 250, 499, 501, 4_750, 4_999, 5_001, 14_999, 60_001];

#[tokio::test(start_paused = true)]
async fn a_revoked_lease_is_noticed_within_a_second_without_a_notification() {
    for held_ms in HELD_MS {
        noticed(held_ms, None).await;
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_about_other_jobs_do_not_delay_it() {
    for held_ms in HELD_MS {
        noticed(held_ms, Some(Ring::Revoked("another token".to_owned()))).await;
    }
}
