//! Which commits wait for the disk, and what they ring.

use super::{Shared, Writer};
use crate::engine::Engine;
use crate::engine::inbox::Inbox;
use crate::engine::intake::Intake;
use crate::engine::rows::get;
use crate::engine::session::{Args, Reader, Readers, Session};
use crate::sql::Text;
use crate::{ClaimRequest, Doorbell, JobKind, Ledger as _, Ring, sqlite};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::join;
use tokio::sync::{mpsc, watch};
use turnstone_domain::engagement::{NewEngagement, User};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::{AgentDefinition, Ids as _, JobId, NewJob, Terms, Timestamp, TurnWrite};

const NOW: Timestamp = Timestamp(1_000_000);
const MODE: Text = Text { sqlite: "PRAGMA synchronous", sqlite_row: "", postgres: "", columns: &[] };

/// An engine whose writer works when it is asked to.
struct ByHand {
    engine: Arc<Engine>,
    inbox: Arc<Inbox>,
    writer: Writer,
    _folder: TempDir,
}

impl ByHand {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let session = Session::new(sqlite::migrated(&path), None, Arc::new(SystemIds)).after(0);
        let readers = Reader::new(Readers::Sqlite(sqlite::Readers::new(path)), None);
        let (sender, inbox) = mpsc::channel(8);
        let inbox = Arc::new(Inbox::new(inbox));
        let (held, refusals) = (Arc::default(), Arc::default());
        let shared = Shared {
            doorbell: Doorbell::default(),
            held: Arc::clone(&held),
            refusals: Arc::clone(&refusals),
        };
        let writer = Writer::new(session, Arc::new(SystemIds), Arc::default(), shared);
        let engine = Arc::new(Engine {
            readers,
            writer: sender,
            inbox: Arc::clone(&inbox),
            writing: watch::channel(()).1,
            held,
            refusals,
            claimer: None,
            steps: Mutex::default(),
            numbering: None,
            ids: Arc::new(SystemIds),
        });
        Self { engine, inbox, writer, _folder: folder }
    }

    /// Commits what `asked` asks for. Returns its answer, and whether the commit waited for the disk.
    async fn commit<T>(&mut self, asked: impl AsyncFnOnce(Arc<Engine>) -> T) -> (T, bool) {
        let (writer, inbox) = (&mut self.writer, &self.inbox);
        let (answer, ()) = join!(asked(Arc::clone(&self.engine)), async {
            let batch = inbox.take().await;
            writer.commit(batch, true).await;
            inbox.done();
        });
        let mode = self.writer.tx.session.rows("read a pragma", &MODE, Args::Values(&[])).await.unwrap();
        (answer, get::<i64>(&mode[0], "synchronous").unwrap() == 2)
    }

    async fn push(&mut self, kind: JobKind, run_at: Timestamp) -> bool {
        let agent = AgentDefinition { name: "a".to_owned(), ..AgentDefinition::default() };
        let id = SystemIds.next().into();
        let engagement = NewEngagement { id, agent, user: User::default(), depth: 0 };
        let job = NewJob {
            id: JobId(SystemIds.next()),
            job_type: "t".to_owned(),
            queue: "q".to_owned(),
            priority: 0,
            run_at,
            expires_at: None,
            timeout_ms: None,
            retry: RetryPolicy::default(),
            envelope: Envelope::default(),
            engagement: (kind == JobKind::Agent).then_some(engagement),
            terms: Terms::default(),
            created_at: NOW,
        };
        let (pushed, waited) = self.commit(async |engine| Intake(engine).push(vec![job]).await).await;
        pushed.unwrap();
        waited
    }

    /// Returns how many jobs were claimed, and whether the commit waited.
    async fn claim(&mut self, kind: JobKind, now: Timestamp) -> (usize, bool) {
        let (claims, waited) = self.commit(async |engine| engine.claim_jobs(request(kind, now)).await).await;
        (claims.unwrap().len(), waited)
    }
}

fn request(kind: JobKind, now: Timestamp) -> ClaimRequest {
    let (queues, worker_id) = (vec!["*".to_owned()], "w".to_owned());
    let (tenant, runtime_tags) = (None, None);
    ClaimRequest { kind, queues, limit: 1, worker_id, lease_ms: 10_000, tenant, runtime_tags, now }
}

#[tokio::test]
async fn the_claims_of_agents_alone_do_not_wait_for_the_disk() {
    let mut by_hand = ByHand::new();
    for kind in [JobKind::Agent, JobKind::Plain] {
        assert!(by_hand.push(kind, NOW).await, "{kind:?}");
        let waits = kind == JobKind::Plain;
        assert_eq!(by_hand.claim(kind, NOW).await, (1, waits), "{kind:?}");
    }
}

#[tokio::test]
async fn the_first_write_of_a_turn_flushes_its_claim() {
    let mut by_hand = ByHand::new();
    by_hand.push(JobKind::Agent, NOW).await;
    let claim = async |engine: Arc<Engine>| engine.claim_jobs(request(JobKind::Agent, NOW)).await;
    let (claims, waited) = by_hand.commit(claim).await;
    let lease = claims.unwrap().remove(0).lease;
    assert!(!waited);
    let write =
        async |engine: Arc<Engine>| engine.checkpoint(&lease, TurnWrite::default(), NOW, 10_000).await;
    let (written, waited) = by_hand.commit(write).await;
    assert!(written.is_ok() && waited);
}

#[tokio::test]
async fn a_claim_that_shares_its_commit_or_writes_an_event_waits_for_the_disk() {
    let mut by_hand = ByHand::new();
    let later = NOW.plus_ms(1_000);
    by_hand.push(JobKind::Agent, later).await;
    assert_eq!(by_hand.claim(JobKind::Agent, NOW).await.0, 0);
    // That it became available is an event.
    assert_eq!(by_hand.claim(JobKind::Agent, later).await, (1, true));
    by_hand.push(JobKind::Agent, NOW).await;
    let both = async |engine: Arc<Engine>| {
        join!(
            engine.claim_jobs(request(JobKind::Agent, NOW)),
            engine.claim_jobs(request(JobKind::Plain, NOW))
        )
    };
    let ((agent, _), waited) = by_hand.commit(both).await;
    assert!(agent.unwrap().len() == 1 && waited);
}

#[tokio::test]
async fn a_push_rings_for_the_readers_of_all_events() {
    let mut by_hand = ByHand::new();
    let mut bell = by_hand.writer.shared.doorbell.listen();
    by_hand.push(JobKind::Plain, NOW).await;
    assert!(
        matches!(bell.try_recv(), Ok(Ring::Events(_))),
        "a reader would find it when it polls, two seconds later"
    );
}
