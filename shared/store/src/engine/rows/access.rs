//! Rows of access: keys of principals, and the audit.

use super::{Fields, Inconsistency, declare, get, wrong};
use crate::Freeze;
use turnstone_domain::Timestamp;
use turnstone_domain::audit::{AuditEntry, AuditHead};
use turnstone_domain::principal::{ApiKey, Role};

declare! {
    /// A key as it is stored; `roles` and `acts_for` are texts of JSON.
    struct KeyRow into api_keys [id] {
        id: String,
        hash: String,
        old_hash: Option<String>,
        old_until: Option<Timestamp>,
        name: String,
        tenant: Option<String>,
        roles: Vec<String>,
        acts_for: Vec<String>,
        rate_per_minute: Option<i64>,
        created_at: Timestamp,
        created_by: String,
        expires_at: Option<Timestamp>,
        revoked_at: Option<Timestamp>,
        last_used_at: Option<Timestamp>,
    }

    /// When a key was used.
    struct KeyUse {
        id: String,
        at: Timestamp,
    }

    /// An entry of the audit.
    struct AuditRow into audit_entries [seq] {
        seq: i64,
        at: Timestamp,
        principal: String,
        tenant: Option<String>,
        action: String,
        target: String,
        outcome: String,
        old_hash: Option<String>,
        new_hash: Option<String>,
        source: Option<String>,
        request_id: Option<String>,
        previous: String,
        hash: String,
    }

    /// A freeze; the scope is a tenant, or empty for the fleet.
    struct FreezeRow into freezes [scope] {
        scope: String,
        reason: Option<String> => sealed,
        frozen_by: String,
        frozen_at: Timestamp,
    }

    /// The end of the audit.
    struct AuditHeadRow into audit_heads [id] {
        id: i64,
        seq: i64,
        hash: String,
    }
}

impl From<&ApiKey> for KeyRow {
    fn from(key: &ApiKey) -> Self {
        let key = key.clone();
        let (old_hash, old_until) = key.old_hash.unzip();
        Self {
            id: key.id,
            hash: key.hash,
            old_hash,
            old_until,
            name: key.name,
            tenant: key.tenant,
            roles: key.roles.into_iter().map(|role| role.as_str().to_owned()).collect(),
            acts_for: key.acts_for,
            rate_per_minute: key.rate_per_minute,
            created_at: key.created_at,
            created_by: key.created_by,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            last_used_at: key.last_used_at,
        }
    }
}

/// Reads a key.
pub(crate) fn api_key(row: &impl Fields) -> Result<ApiKey, Inconsistency> {
    let role =
        |word: String| Role::parse(&word).ok_or_else(|| wrong("roles", format!("`{word}` is unknown")));
    let old_hash = get::<Option<String>>(row, "old_hash")?.zip(get(row, "old_until")?);
    Ok(ApiKey {
        id: get(row, "id")?,
        hash: get(row, "hash")?,
        old_hash,
        name: get(row, "name")?,
        tenant: get(row, "tenant")?,
        roles: get::<Vec<String>>(row, "roles")?.into_iter().map(role).collect::<Result<_, _>>()?,
        acts_for: get(row, "acts_for")?,
        rate_per_minute: get(row, "rate_per_minute")?,
        created_at: get(row, "created_at")?,
        created_by: get(row, "created_by")?,
        expires_at: get(row, "expires_at")?,
        revoked_at: get(row, "revoked_at")?,
        last_used_at: get(row, "last_used_at")?,
    })
}

impl From<&AuditEntry> for AuditRow {
    fn from(entry: &AuditEntry) -> Self {
        let entry = entry.clone();
        Self {
            seq: entry.seq,
            at: entry.at,
            principal: entry.principal,
            tenant: entry.tenant,
            action: entry.action,
            target: entry.target,
            outcome: entry.outcome,
            old_hash: entry.before,
            new_hash: entry.after,
            source: entry.source,
            request_id: entry.request_id,
            previous: entry.previous,
            hash: entry.hash,
        }
    }
}

impl From<AuditHead> for AuditHeadRow {
    fn from(head: AuditHead) -> Self {
        Self { id: 1, seq: head.seq, hash: head.hash }
    }
}

impl From<&Freeze> for FreezeRow {
    fn from(freeze: &Freeze) -> Self {
        let Freeze { tenant, reason, frozen_by, frozen_at } = freeze.clone();
        Self { scope: tenant.unwrap_or_default(), reason, frozen_by, frozen_at }
    }
}

/// Reads a freeze.
pub(crate) fn freeze(row: &impl Fields) -> Result<Freeze, Inconsistency> {
    let scope: String = get(row, "scope")?;
    Ok(Freeze {
        tenant: Some(scope).filter(|scope| !scope.is_empty()),
        reason: get(row, "reason")?,
        frozen_by: get(row, "frozen_by")?,
        frozen_at: get(row, "frozen_at")?,
    })
}

/// Reads an entry of the audit.
pub(crate) fn audit_entry(row: &impl Fields) -> Result<AuditEntry, Inconsistency> {
    Ok(AuditEntry {
        seq: get(row, "seq")?,
        at: get(row, "at")?,
        principal: get(row, "principal")?,
        tenant: get(row, "tenant")?,
        action: get(row, "action")?,
        target: get(row, "target")?,
        outcome: get(row, "outcome")?,
        before: get(row, "old_hash")?,
        after: get(row, "new_hash")?,
        source: get(row, "source")?,
        request_id: get(row, "request_id")?,
        previous: get(row, "previous")?,
        hash: get(row, "hash")?,
    })
}
