//! The audit: the writes.

use super::super::rows::{AuditHeadRow, AuditRow, Fields, Inconsistency, get};
use super::super::session::{Args, Session};
use super::super::statement::{Writes, read};
use crate::{StoreError, sql};
use turnstone_domain::audit::{AuditEntry, AuditHead};

/// Appends entries to the chain, and returns them as they are in it. The head stays locked until the transaction ends.
pub(in super::super) async fn append(
    session: &mut Session,
    entries: Vec<AuditEntry>,
) -> Result<Vec<AuditEntry>, StoreError> {
    let mut head = lock(session).await?;
    let mut appended = Vec::with_capacity(entries.len());
    for entry in entries {
        let entry = entry.after(&head);
        head = entry.head();
        appended.push(entry);
    }
    let mut writes = Writes::default();
    writes.insert("append to the audit", appended.iter().map(AuditRow::from).collect());
    writes.insert_over("move the end of the audit", vec![AuditHeadRow::from(head)]);
    writes.run(session).await?;
    Ok(appended)
}

async fn lock(session: &mut Session) -> Result<AuditHead, StoreError> {
    let (action, text) = ("lock the end of the audit", &sql::LOCK_AUDIT_HEAD);
    if let Some(found) = read(session, action, text, &[], head).await?.pop() {
        return Ok(found);
    }
    // The first entry. A concurrent transaction may make the row, and is waited for.
    session.execute("begin the audit", &sql::INSERT_AUDIT_HEAD, Args::Values(&[])).await?;
    Ok(read(session, action, text, &[], head).await?.pop().unwrap_or_default())
}

pub(in super::super) fn head(row: &impl Fields) -> Result<AuditHead, Inconsistency> {
    Ok(AuditHead { seq: get(row, "seq")?, hash: get(row, "hash")? })
}
