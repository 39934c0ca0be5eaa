//! The code that both databases share: the decisions, the group commit, and the handles of the concerns.
//!
//! Only [`session`] knows which database it is: a connection that writes, and others that read.

pub(crate) mod artifacts;
pub(crate) mod audit;
pub(crate) mod batches;
mod breakers;
pub(crate) mod budgets;
mod caller;
mod claimer;
pub(crate) mod columns;
pub(crate) mod control;
pub mod credentials;
pub(crate) mod crons;
mod definitions;
pub(crate) mod delegations;
pub(crate) mod feed;
pub(crate) mod forks;
pub(crate) mod freezes;
mod held;
pub(crate) mod idempotency;
mod ids;
mod inbox;
pub(crate) mod inspect;
pub(crate) mod intake;
mod job_filter;
mod job_meta;
mod jobs;
mod journal;
pub(crate) mod keys;
mod limit_name;
mod limited;
mod memories;
mod numbering;
pub(crate) mod operate;
mod ops;
mod passed;
pub(crate) mod questions;
pub(crate) mod queues;
mod recall;
mod record_gaps;
mod refusals;
pub(crate) mod remote;
pub mod remote_calls;
mod request;
pub(crate) mod rows;
pub(crate) mod runs;
pub(crate) mod schemas;
pub(crate) mod session;
mod statement;
mod streams;
pub(crate) mod tenants;
pub(crate) mod transfers;
mod unit;
pub(crate) mod views;
pub(crate) mod webhooks;
pub(crate) mod workflows;
mod writer;

use crate::limits::RateLimits;
use crate::{Doorbell, Store, StoreError};
use artifacts::Artifacts;
use async_recursion::async_recursion as boxed;
use audit::Audit;
use batches::Batches;
use budgets::Budgets;
use control::Control;
use credentials::Credentials;
use crons::Crons;
use delegations::Delegations;
use feed::Feed;
use forks::Forks;
use freezes::Freezes;
use held::HeldJobs;
use idempotency::IdempotentPushes;
use inbox::Inbox;
use intake::Intake;
use keys::Keys;
use limited::LimitedQueues;
use numbering::Numbering;
use operate::Operate;
use questions::Questions;
use queues::Queues;
use refusals::Refusals;
use remote::Remote;
use remote_calls::RemoteCalls;
use request::Asked;
use runs::Runs;
use schemas::Schemas;
use session::{Reader, Session};
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};
use std::{io, thread};
use tenants::Tenants;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use transfers::Transfers;
use turnstone_domain::{ClockSteps, Ids};
use views::Views;
use webhooks::Webhooks;
use workflows::Workflows;
use writer::{Shared, Writer};

/// Requests that may wait for a writer before callers have to wait to hand theirs over.
const INBOX: usize = 4096;

/// A store over one database.
pub(crate) struct Engine {
    readers: Reader,
    writer: mpsc::Sender<Asked>,
    inbox: Arc<Inbox>,
    /// Closed when every writer has ended.
    writing: watch::Receiver<()>,
    held: Arc<HeldJobs>,
    refusals: Arc<Refusals>,
    /// Claims in one statement, where the database can.
    claimer: Option<Claimer>,
    /// The steps of the clock that the scheduler of this process follows.
    steps: Mutex<ClockSteps>,
    /// Numbers new commits, where a commit cannot number itself.
    numbering: Option<Numbering>,
    ids: Arc<dyn Ids>,
}

/// The way to the claimer, and from when on it may be asked again.
struct Claimer {
    asked: mpsc::Sender<claimer::Asked>,
    /// Milliseconds since the epoch.
    from: AtomicI64,
}

/// Starts a writer per session; they share one inbox and end when the store is dropped. `claims` is the session for claims in
/// one statement, where the database can make them.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn start(
    readers: Reader,
    sessions: Vec<Session>,
    claims: Option<Session>,
    ids: &Arc<dyn Ids>,
    limits: Arc<dyn RateLimits>,
) -> Result<Store, StoreError> {
    let doorbell = Doorbell::default();
    let (writer, inbox) = mpsc::channel(INBOX);
    let inbox = Arc::new(Inbox::new(inbox));
    let (alive, writing) = watch::channel(());
    let held: Arc<HeldJobs> = Arc::default();
    let limited: Arc<LimitedQueues> = Arc::default();
    let refusals: Arc<Refusals> = Arc::default();
    let mut numbering = None;
    for session in sessions {
        let embedded = session.is_embedded();
        numbering = (!embedded).then(Numbering::default);
        let shared =
            Shared { doorbell: doorbell.clone(), held: Arc::clone(&held), refusals: Arc::clone(&refusals) };
        let writer = Writer::new(session, Arc::clone(ids), Arc::clone(&limited), shared);
        let (inbox, alive) = (Arc::clone(&inbox), alive.clone());
        let work = async move {
            writer.run(inbox).await;
            drop(alive);
        };
        if embedded { on_a_thread(work)? } else { drop(tokio::spawn(work)) }
    }
    let claimer = claims.map(|session| {
        let requested = claimer::start(session, Arc::clone(ids), doorbell.clone(), Arc::clone(&held));
        Claimer { asked: requested, from: AtomicI64::new(0) }
    });
    let steps = Mutex::default();
    let ids = Arc::clone(ids);
    let engine =
        Arc::new(Engine { readers, writer, inbox, writing, held, refusals, claimer, steps, numbering, ids });
    let handle = || Arc::clone(&engine);
    Ok(Store {
        intake: Intake(handle()),
        idempotency: IdempotentPushes(handle()),
        ledger: handle(),
        upkeep: handle(),
        views: Views(handle()),
        remote: Remote(handle()),
        queues: Queues(handle()),
        operate: Operate(handle()),
        workflows: Workflows(handle()),
        crons: Crons(handle()),
        schemas: Schemas(handle()),
        feed: Feed(handle()),
        webhooks: Webhooks(handle()),
        tenants: Tenants(handle()),
        control: Control(handle()),
        artifacts: Artifacts(handle()),
        breakers: handle(),
        remote_calls: RemoteCalls(handle()),
        batches: Batches(handle()),
        budgets: Budgets(handle()),
        credentials: Credentials(handle()),
        keys: Keys(handle()),
        freezes: Freezes(handle()),
        audit: Audit(handle()),
        forks: Forks(handle()),
        questions: Questions(handle()),
        runs: Runs(handle()),
        transfers: Transfers(handle()),
        delegations: Delegations(handle()),
        limits,
        doorbell,
    })
}

impl Store {
    /// Takes no more writes, commits those that wait, and ends the writers. The file of an embedded database is then complete
    /// without its log.
    #[boxed]
    pub async fn close(&self) {
        let engine = &self.views.0;
        engine.inbox.close();
        // Nothing is ever sent: the writers only drop their ends.
        let _ = engine.writing.clone().changed().await;
    }
}

/// Runs the writer of a database whose calls block on a thread of its own, with the timers of the current runtime.
fn on_a_thread(work: impl Future<Output = ()> + Send + 'static) -> Result<(), StoreError> {
    let runtime = Handle::current();
    let thread = thread::Builder::new().name("writer".to_owned()).spawn(move || runtime.block_on(work));
    let failed =
        |error: io::Error| StoreError::Database { action: "start the writer", message: error.to_string() };
    thread.map(|_| ()).map_err(failed)
}
