//! State of agents: read and locked before the steps that change it, checked against what each turn has read, and written
//! with everything else of the transaction.

use super::super::columns::Columns;
use super::super::rows::{NewScope, ScopeVersion, StateKey, StateKeyName, get};
use super::super::session::{Arg, Args, Row, Session};
use super::super::statement::{Writes, as_json, decode_all, read_by};
use super::super::unit::Unit;
use super::turns::TurnStep;
use crate::{LedgerError, StoreError, sql};
use std::collections::{BTreeMap, BTreeSet};
use turnstone_domain::Timestamp;
use turnstone_domain::session_state::{Expect, StateCommit};

type StateKeyId = (String, String);

/// The new value of a key.
struct Write {
    value: Option<String>,
    version: i64,
    at: Timestamp,
    expires_at: Option<Timestamp>,
}

/// Scopes that were read, and what is to be written to them.
#[derive(Default)]
pub(in super::super) struct States {
    versions: BTreeMap<String, i64>,
    keys: BTreeMap<StateKeyId, i64>,
    changed: BTreeMap<String, Timestamp>,
    writes: BTreeMap<StateKeyId, Write>,
}

/// Reads what the steps expect, and locks the scopes that they change.
pub(in super::super) async fn take_in(
    session: &mut Session,
    unit: &mut Unit,
    steps: &[&TurnStep],
) -> Result<(), StoreError> {
    let (mut scopes, mut keys) = (BTreeMap::new(), BTreeSet::new());
    let mut now = Timestamp::default();
    for step in steps {
        let Some(commit) = &step.write.state else { continue };
        now = now.max(step.now);
        let engagement =
            unit.seq_of(&step.lease.job).and_then(|seq| unit.engagement_of(seq)).map(|row| row.seq);
        let engagement = engagement.filter(|_| commit.scope.of_engagement);
        scopes.insert(commit.scope.name.clone(), (engagement, step.now));
        if let Expect::Keys(seen) = &commit.expect {
            let of_scope =
                |key: &String| StateKeyName { scope: commit.scope.name.clone(), name: key.clone() };
            keys.extend(seen.iter().map(|(key, _)| of_scope(key)));
        }
    }
    if scopes.is_empty() {
        return Ok(());
    }
    let new = scopes.iter().map(|(name, (engagement, at))| NewScope::of(name, *engagement, *at)).collect();
    let mut writes = Writes::default();
    writes.insert_missing("open states", new);
    writes.run(session).await?;
    let names = scopes.into_keys().collect();
    let version = |row: &Row| Ok((get::<String>(row, "name")?, get::<i64>(row, "version")?));
    let versions = read_by(session, "read states", &sql::LOCK_STATE_SCOPES, names, version).await?;
    unit.states.versions.extend(versions);
    if !keys.is_empty() {
        let at = [Arg::Int(Some(now.0))];
        let (action, text) = ("read keys of states", &sql::SELECT_STATE_KEY_VERSIONS);
        let keys = Args::Rows(Columns::of(keys.into_iter().collect(), text)?, &at);
        let found = decode_all(&session.rows(action, text, keys).await?, |row| {
            let key = (get::<String>(row, "scope")?, get::<String>(row, "name")?);
            Ok((key, get::<Option<i64>>(row, "version")?.unwrap_or_default()))
        })?;
        unit.states.keys.extend(found);
    }
    Ok(())
}

impl States {
    /// Refuses a commit whose turn has read what is no longer so.
    pub(super) fn check(&self, commit: &StateCommit) -> Result<(), LedgerError> {
        let scope = &commit.scope.name;
        let version = self.versions.get(scope).copied().unwrap_or_default();
        let key_version =
            |key: &String| self.keys.get(&(scope.clone(), key.clone())).copied().unwrap_or_default();
        let fits = match &commit.expect {
            Expect::Anything => true,
            Expect::Scope(seen) => version == *seen,
            Expect::Keys(seen) => seen.iter().all(|(key, seen)| key_version(key) == *seen),
        };
        if fits { Ok(()) } else { Err(LedgerError::StateConflict) }
    }

    /// Notes a commit; later ones of the same transaction see it.
    pub(super) fn apply(&mut self, commit: &StateCommit, at: Timestamp) -> Result<(), StoreError> {
        let scope = &commit.scope.name;
        let version = self.versions.entry(scope.clone()).or_default();
        *version += 1;
        let version = *version;
        self.changed.insert(scope.clone(), at);
        for write in &commit.writes {
            let key = (scope.clone(), write.key.clone());
            match &write.value {
                Some(_) => self.keys.insert(key.clone(), version),
                None => self.keys.remove(&key),
            };
            let value = write.value.as_ref().map(as_json).transpose()?;
            self.writes.insert(key, Write { value, version, at, expires_at: write.expires_at });
        }
        Ok(())
    }

    /// Hands over what is to be written.
    pub(in super::super) fn flush(&mut self, writes: &mut Writes) {
        let versions = &self.versions;
        let scope = |(name, at)| {
            let version = versions.get(&name).copied().unwrap_or_default();
            ScopeVersion { name, version, at }
        };
        let scopes = std::mem::take(&mut self.changed).into_iter().map(scope).collect();
        let (mut put, mut deleted) = (Vec::new(), Vec::new());
        for ((scope, name), write) in std::mem::take(&mut self.writes) {
            match write.value {
                Some(content) => {
                    let Write { version, at: updated_at, expires_at, .. } = write;
                    put.push(StateKey { scope, name, content, version, updated_at, expires_at });
                }
                None => deleted.push(StateKeyName { scope, name }),
            }
        }
        writes.all("write states", &sql::UPDATE_STATE_SCOPES, scopes);
        writes.insert_over("write keys of states", put);
        writes.some("delete keys of states", &sql::DELETE_STATE_KEYS, deleted);
    }
}
