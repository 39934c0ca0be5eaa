//! Entries that make a job at times: the writes.

mod entries;
mod fire;

use super::super::session::Session;
use super::super::unit::Unit;
use super::leader;
use crate::{Firing, StoreError, Term};
use turnstone_domain::cron::{CronChange, CronEntry};
use turnstone_domain::{Ids, JobId, NewJob, Timestamp};

/// What is asked.
pub(in super::super) enum Request {
    Put(Box<CronEntry>),
    Change { name: String, tenant: Option<String>, change: Box<CronChange>, at: Timestamp },
    Forget { name: String, tenant: Option<String> },
    Fire { firing: Box<Firing>, term: Term },
    Trigger { entry: Box<CronEntry>, job: Box<NewJob>, at: Timestamp },
}

/// What became of it.
pub(in super::super) enum Answer {
    Changed(bool),
    Forgotten(Option<Box<CronEntry>>),
    Fired(Option<usize>),
    Triggered(JobId),
    /// Refused for a reason that is this caller's alone; nothing was written for it.
    Refused(StoreError),
}

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    request: &Request,
    ids: &dyn Ids,
) -> Result<Answer, StoreError> {
    Ok(match request {
        Request::Put(entry) => Answer::Changed(entries::put(session, unit, entry).await?),
        Request::Change { name, tenant, change, at } => {
            Answer::Changed(entries::change(session, unit, (name, tenant.as_deref()), change, *at).await?)
        }
        Request::Forget { name, tenant } => {
            Answer::Forgotten(entries::forget(session, name, tenant.as_deref()).await?.map(Box::new))
        }
        Request::Fire { firing, term } => {
            if !leader::holds(session, term).await? {
                return Ok(Answer::Refused(StoreError::Deposed));
            }
            Answer::Fired(fire::apply(session, unit, firing, ids).await?)
        }
        Request::Trigger { entry, job, at } => {
            match fire::trigger(session, unit, entry, job, *at, ids).await? {
                Ok(job) => Answer::Triggered(job),
                Err(refused) => Answer::Refused(refused),
            }
        }
    })
}

/// Whose an entry is, as its row says it.
fn owner(entry: &CronEntry) -> &str {
    entry.tenant.as_deref().unwrap_or_default()
}
