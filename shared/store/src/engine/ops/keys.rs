//! API keys: the writes.

use super::super::rows::{KeyRow, KeyUse, api_key};
use super::super::session::Session;
use super::super::statement::{Writes, execute, read};
use crate::engine::keys::{NewKeyOutcome, Rotation};
use crate::{StoreError, sql};
use turnstone_domain::Timestamp;
use turnstone_domain::principal::ApiKey;

/// A tenant, or the fleet, has at most this many living keys.
const MOST: usize = 1_000;

pub(in super::super) async fn create(
    session: &mut Session,
    key: &ApiKey,
) -> Result<NewKeyOutcome, StoreError> {
    let all = read(session, "read the keys", &sql::SELECT_API_KEYS, &[], api_key).await?;
    let mut others = all.iter().filter(|other| other.tenant == key.tenant && other.is_valid(key.created_at));
    if others.clone().count() >= MOST {
        return Ok(NewKeyOutcome::TooMany { most: MOST });
    }
    if others.any(|other| other.name == key.name) {
        return Ok(NewKeyOutcome::NameTaken);
    }
    let mut writes = Writes::default();
    writes.insert("create a key", vec![KeyRow::from(key)]);
    writes.run(session).await?;
    Ok(NewKeyOutcome::Created)
}

pub(in super::super) async fn rotate(
    session: &mut Session,
    rotation: &Rotation,
) -> Result<Option<ApiKey>, StoreError> {
    let Some(mut key) = living(session, &rotation.id, rotation.tenant.as_deref(), rotation.at).await? else {
        return Ok(None);
    };
    let old = std::mem::replace(&mut key.hash, rotation.hash.clone());
    key.old_hash = (rotation.old_until > rotation.at).then_some((old, rotation.old_until));
    keep(session, &key).await?;
    Ok(Some(key))
}

pub(in super::super) async fn revoke(
    session: &mut Session,
    id: &str,
    tenant: Option<&str>,
    at: Timestamp,
) -> Result<Option<ApiKey>, StoreError> {
    let Some(mut key) = living(session, id, tenant, at).await? else { return Ok(None) };
    key.revoked_at = Some(at);
    keep(session, &key).await?;
    Ok(Some(key))
}

pub(in super::super) async fn used(
    session: &mut Session,
    uses: &[(String, Timestamp)],
) -> Result<(), StoreError> {
    let rows = uses.iter().map(|(id, at)| KeyUse { id: id.clone(), at: *at }).collect();
    execute(session, "note the use of keys", &sql::UPDATE_USED_API_KEYS, rows, &[]).await.map(|_| ())
}

/// Locks a key that is neither revoked nor expired.
async fn living(
    session: &mut Session,
    id: &str,
    tenant: Option<&str>,
    at: Timestamp,
) -> Result<Option<ApiKey>, StoreError> {
    let values = [id.into(), tenant.into()];
    let found = read(session, "lock a key", &sql::LOCK_API_KEY, &values, api_key).await?.pop();
    Ok(found.filter(|key| key.is_valid(at)))
}

async fn keep(session: &mut Session, key: &ApiKey) -> Result<(), StoreError> {
    let mut writes = Writes::default();
    writes.insert_over("change a key", vec![KeyRow::from(key)]);
    writes.run(session).await
}
