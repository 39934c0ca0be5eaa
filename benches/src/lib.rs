//! The parts that `turnstone bench` and the benches of this folder share: the machine and its disk, the jobs, and the naive
//! comparison. Beside them is the ground of the micro-benches: a store in a temporary file, and what is written to it.
//!
//! The micro-benches measure single calls of the store, to find out what a change costs. `turnstone bench` measures whole
//! things and compares them with the disk; its figures are those that docs/BENCHMARKS.md explains.
//!
//! ```text
//!  this crate: a store, jobs, checkpoints ─▶ benches/*.rs: one call each ─▶ criterion
//! ```

pub mod disk;
pub mod history;
pub mod jobs;
pub mod machine;
pub mod naive;

use serde_json::json;
use std::io;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{
    Clock as _, EventData, EventName, NewCheckpoint, NewEvent, Phase, PhaseCompleted, RawJson, Spent,
    SystemClock, TurnWrite,
};
use turnstone_store::{Claim, ClaimRequest, JobKind, SqliteStore, Store, StoreError};

/// How long the leases of a bench last: longer than a bench.
pub const LEASE_MS: i64 = 3_600_000;

/// A store in a temporary file of the current directory: the disk that matters, not a file system in memory.
pub struct Ground {
    /// The runtime of the store and the benches.
    pub runtime: Runtime,
    /// The store.
    pub store: Store,
    _dir: TempDir,
}

impl Ground {
    /// A new, empty store.
    ///
    /// # Errors
    /// The directory cannot be written, or the store cannot be opened.
    pub fn open() -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix(".turnstone-bench-").tempdir_in(".")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let path = dir.path().join("bench.db");
        let store =
            runtime.block_on(SqliteStore::open(&path, Arc::new(SystemIds))).map_err(io::Error::other)?;
        Ok(Self { runtime, store, _dir: dir })
    }

    /// Enqueues `count` jobs of a kind and claims them.
    ///
    /// # Errors
    /// The store failed.
    pub fn claimed(&self, kind: JobKind, count: usize) -> Result<Vec<Claim>, StoreError> {
        self.runtime.block_on(async {
            self.store.intake.push(jobs::several(kind, count)).await?;
            self.store.ledger.claim(request(kind, count)).await
        })
    }
}

/// A claim of up to `limit` jobs.
#[must_use]
pub fn request(kind: JobKind, limit: usize) -> ClaimRequest {
    ClaimRequest {
        kind,
        queues: vec![jobs::QUEUE.to_owned()],
        limit,
        worker_id: "bench".to_owned(),
        lease_ms: LEASE_MS,
        tenant: None,
        runtime_tags: None,
        now: SystemClock.now(),
    }
}

/// The write of one phase: its checkpoint and its event.
#[must_use]
pub fn phase(turn: i64) -> TurnWrite {
    let at = SystemClock.now();
    let done = NewCheckpoint {
        turn,
        phase: Phase::Init,
        version: 1,
        body: RawJson::of(
            &json!({"interaction_id": "0190a7b2-0000-7000-8000-000000000000", "turn_number": turn}),
        ),
        duration_ms: 1,
        tokens_in: 0,
        tokens_out: 0,
        at,
        spent: Spent::default(),
    };
    let said = PhaseCompleted { phase: Phase::Init, duration_ms: 1, more: RawJson::empty_object() };
    let data = EventData::Phase(said);
    let event = NewEvent { name: EventName::PhaseCompleted, turn, data, at };
    TurnWrite { checkpoints: vec![done], events: vec![event], ..TurnWrite::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ground_bears_claims_and_checkpoints() {
        let ground = Ground::open().unwrap();
        assert_eq!(ground.claimed(JobKind::Plain, 3).unwrap().len(), 3);
        let claims = ground.claimed(JobKind::Agent, 2).unwrap();
        let lease = &claims[0].lease;
        let write = ground.store.ledger.checkpoint(lease, phase(1), SystemClock.now(), LEASE_MS);
        ground.runtime.block_on(write).unwrap();
    }
}
