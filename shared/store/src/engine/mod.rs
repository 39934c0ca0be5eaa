//! What both databases share: the decisions, the group commit, and the four traits over them.
//!
//! The engine knows nothing of a database but its [`session`]: how to run a statement on one connection that writes,
//! and on others that read.

mod artifacts;
mod breakers;
mod budgets;
mod caller;
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
mod jobs;
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
use session::{Reader, Session};
use std::sync::Arc;
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
}

/// Starts a writer per session on the current runtime; they share one inbox and end when the store is dropped.
pub(crate) fn start<R: Reader, S: Session>(
    readers: R,
    sessions: Vec<S>,
    ids: &Arc<dyn Ids>,
    limits: Arc<dyn RateLimits>,
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
    let engine = Arc::new(Engine { readers, writer, held, limited });
    Store {
        intake: Arc::clone(&engine) as _,
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
