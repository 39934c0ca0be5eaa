//! What both databases share: the decisions, the group commit, and the four traits over them.
//!
//! The engine knows nothing of a database but its [`session`]: how to run a statement on one connection that writes,
//! and on others that read.

mod artifacts;
mod breakers;
mod budgets;
mod caller;
mod claimer;
pub(crate) mod columns;
mod control;
mod credentials;
mod crons;
mod definitions;
mod delegations;
mod elsewhere;
mod feed;
mod forks;
mod held;
mod idempotency;
mod jobs;
mod journal;
mod limit_name;
mod limited;
mod memories;
mod operate;
mod ops;
mod questions;
mod queues;
mod remote;
pub(crate) mod rows;
mod runs;
mod schemas;
pub(crate) mod session;
mod statement;
mod tenants;
mod transfers;
mod unit;
mod views;
mod webhooks;
mod workflows;
mod writer;

use crate::limits::RateLimits;
use crate::{Doorbell, Store};
use held::Held;
use limited::LimitedQueues;
use session::{Alone, Reader, Session};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use tokio::sync::{Mutex, mpsc};
use turnstone_domain::Ids;
use writer::{Asked, Writer};

/// Requests that may wait for a writer before callers have to wait to hand theirs over.
const INBOX: usize = 4096;

/// A store over one database.
pub(crate) struct Engine<R> {
    readers: R,
    writer: mpsc::Sender<Asked>,
    held: Arc<Held>,
    limited: Arc<LimitedQueues>,
    /// Claims in one statement, where the database can.
    claimer: Option<Claimer>,
}

/// The way to the claimer, and from when on it may be asked again.
struct Claimer {
    asked: mpsc::Sender<claimer::Asked>,
    /// Milliseconds since the epoch.
    from: AtomicI64,
}

/// Starts a writer per session on the current runtime; they share one inbox and end when the store is dropped.
pub(crate) fn start<R: Reader, S: Session>(
    readers: R,
    sessions: Vec<S>,
    ids: &Arc<dyn Ids>,
    limits: Arc<dyn RateLimits>,
) -> Store {
    assemble(readers, sessions, ids, limits, |_, _| None)
}

/// The same, with a session for claims in one statement, if there may be such claims.
pub(crate) fn start_claiming<R: Reader, S: Alone>(
    readers: R,
    sessions: Vec<S>,
    claims: Option<S>,
    ids: &Arc<dyn Ids>,
    limits: Arc<dyn RateLimits>,
) -> Store {
    let claimer = |doorbell: &Doorbell, held: &Arc<Held>| {
        claims.map(|session| claimer::start(session, Arc::clone(ids), doorbell.clone(), Arc::clone(held)))
    };
    assemble(readers, sessions, ids, limits, claimer)
}

fn assemble<R: Reader, S: Session>(
    readers: R,
    sessions: Vec<S>,
    ids: &Arc<dyn Ids>,
    limits: Arc<dyn RateLimits>,
    claimer: impl FnOnce(&Doorbell, &Arc<Held>) -> Option<mpsc::Sender<claimer::Asked>>,
) -> Store {
    let doorbell = Doorbell::default();
    let (writer, inbox) = mpsc::channel(INBOX);
    let inbox = Arc::new(Mutex::new(inbox));
    let held: Arc<Held> = Arc::default();
    let limited: Arc<LimitedQueues> = Arc::default();
    for session in sessions {
        let writer =
            Writer::new(session, Arc::clone(ids), doorbell.clone(), Arc::clone(&held), Arc::clone(&limited));
        tokio::spawn(writer.run(Arc::clone(&inbox)));
    }
    let claimer = claimer(&doorbell, &held);
    let claimer = claimer.map(|asked| Claimer { asked, from: AtomicI64::new(0) });
    let engine = Arc::new(Engine { readers, writer, held, limited, claimer });
    Store {
        intake: Arc::clone(&engine) as _,
        idempotency: Arc::clone(&engine) as _,
        ledger: Arc::clone(&engine) as _,
        upkeep: Arc::clone(&engine) as _,
        views: Arc::clone(&engine) as _,
        remote: Arc::clone(&engine) as _,
        queues: Arc::clone(&engine) as _,
        operate: Arc::clone(&engine) as _,
        workflows: Arc::clone(&engine) as _,
        crons: Arc::clone(&engine) as _,
        schemas: Arc::clone(&engine) as _,
        feed: Arc::clone(&engine) as _,
        webhooks: Arc::clone(&engine) as _,
        tenants: Arc::clone(&engine) as _,
        control: Arc::clone(&engine) as _,
        artifacts: Arc::clone(&engine) as _,
        breakers: Arc::clone(&engine) as _,
        elsewhere: Arc::clone(&engine) as _,
        budgets: Arc::clone(&engine) as _,
        credentials: Arc::clone(&engine) as _,
        forks: Arc::clone(&engine) as _,
        questions: Arc::clone(&engine) as _,
        runs: Arc::clone(&engine) as _,
        transfers: Arc::clone(&engine) as _,
        delegations: engine,
        limits,
        doorbell,
    }
}
