//! The audit: entries in the transactions of the changes that they record.
//!
//! A caller wraps a request in [`audited`]. Each write of the request that changes something then appends an entry to the
//! chain, in the write's own transaction. The entries of a transaction are appended last, because they lock the head of
//! the chain, which the fleet shares.

use super::Engine;
use super::ops::audit as ops;
use super::rows::audit_entry;
use super::session::Arg;
use super::views::{all, many};
use crate::{Page, StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_domain::Timestamp;
use turnstone_domain::audit::{AuditEntry, AuditHead};
use turnstone_domain::digest::Running;

tokio::task_local! {
    static NOTE: Arc<AuditNote>;
}

/// The facts of a request for its audit entries.
#[derive(Debug)]
pub struct AuditNote {
    /// The principal.
    pub principal: String,
    /// The tenant; `None` for the fleet.
    pub tenant: Option<String>,
    /// The operation.
    pub action: String,
    /// The path of the request.
    pub target: String,
    /// The address of the client.
    pub source: Option<String>,
    /// The id of the request.
    pub request_id: Option<String>,
    /// The digest of what was read of the body so far.
    pub body: Arc<Mutex<Running>>,
    /// Now.
    pub at: Timestamp,
}

impl AuditNote {
    /// Returns the entry, which is not part of the chain yet.
    #[must_use]
    pub fn entry(&self, outcome: &str, before: Option<String>) -> AuditEntry {
        AuditEntry {
            seq: 0,
            at: self.at,
            principal: self.principal.clone(),
            tenant: self.tenant.clone(),
            action: self.action.clone(),
            target: self.target.clone(),
            outcome: outcome.to_owned(),
            before,
            after: self.body.lock().unwrap_or_else(PoisonError::into_inner).digest(),
            source: self.source.clone(),
            request_id: self.request_id.clone(),
            previous: String::new(),
            hash: String::new(),
        }
    }
}

/// The target of the log records of entries. OTLP exports them whatever the filter of the log is.
const LOG: &str = "turnstone::audit";

/// Runs a request whose writes are audited.
pub async fn audited<F: Future>(note: Arc<AuditNote>, request: F) -> F::Output {
    NOTE.scope(note, request).await
}

/// Returns the note of the current request, if its writes are audited.
pub(super) fn current() -> Option<Arc<AuditNote>> {
    NOTE.try_with(Arc::clone).ok()
}

/// Writes an entry to the log as well, from where OTLP exports it. The record has all members, so its receiver can verify
/// the chain.
pub(super) fn publish(entry: &AuditEntry) {
    let AuditEntry { seq, principal, action, target, outcome, previous, hash, .. } = entry;
    let AuditEntry { tenant, before, after, source, request_id, .. } = entry;
    tracing::info!(
        target: LOG,
        seq,
        at = entry.at.0,
        who = principal,
        tenant,
        action,
        target,
        outcome,
        before,
        after,
        source,
        request_id,
        previous,
        hash,
        "audited"
    );
}

/// The chain of the audit.
#[derive(Clone)]
pub struct Audit(pub(super) Arc<Engine>);

impl Audit {
    /// Appends entries that belong to no change, such as refused requests.
    #[boxed]
    pub async fn append(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.0
            .write(entries, |tx, entries| {
                Box::pin(async move { ops::append(&mut tx.session, entries.clone()).await.map(|_| ()) })
            })
            .await
    }

    /// Returns the end of the chain.
    #[boxed]
    pub async fn head(&self) -> Result<AuditHead, StoreError> {
        let (action, text) = ("read the end of the audit", &sql::SELECT_AUDIT_HEAD);
        Ok(all(&self.0.readers, action, text, &[], ops::head).await?.pop().unwrap_or_default())
    }

    /// Returns at most `limit` entries after a number, in order. An entry that cannot be read is an error.
    #[boxed]
    pub async fn after(&self, seq: i64, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let (action, text) = ("read the audit", &sql::SELECT_AUDIT_ENTRIES);
        all(&self.0.readers, action, text, &[seq.into(), limit.into()], audit_entry).await
    }

    /// Returns the newest entries of a tenant, or of all, the newest first; with `before`, those below this number.
    #[boxed]
    pub async fn newest(
        &self,
        tenant: Option<&str>,
        page: Page,
        before: Option<i64>,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let values = [tenant.into(), page.limit.into(), page.offset.into(), Arg::Int(before)];
        let (action, text) = ("list the audit", &sql::SELECT_NEWEST_AUDIT_ENTRIES);
        many(&self.0.readers, action, text, &values, audit_entry).await
    }
}
