//! The data keys of one database, which seal the values.
//!
//! They are random, and kept in the table `data_keys`, each sealed with a key of the configuration. The first write
//! under a new key of the configuration makes a data key under it and seals the older data keys again, in one
//! transaction. From then on the previous key of the configuration is not needed. Values stay as they are.

use super::key::{Place, SECRET_LEN, Sealed, SealingKey};
use super::keys::EncryptionKeys;
use crate::engine::rows::Fields;
use crate::engine::session::{Args, CommitError, Connection, Durability, Readers, Row};
use crate::{Finding, StoreError, sql};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

const TABLE: &str = "data_keys";
/// The most attempts to take the next number while other processes take it first.
const TRIES: usize = 8;
const READ: &str = "read data keys";

/// A row of `data_keys`.
pub(crate) struct DataKey {
    seq: i64,
    body: String,
}

impl DataKey {
    pub(crate) fn decode(row: &Row) -> Result<Self, StoreError> {
        let wrong = |column: &str, message: Option<String>| StoreError::Unreadable {
            column: format!("{TABLE}.{column}"),
            message: message.unwrap_or_else(|| "it is NULL".to_owned()),
        };
        let seq = row.int("seq").map_err(|why| wrong("seq", Some(why)))?.ok_or_else(|| wrong("seq", None))?;
        let body = row.text("body").map_err(|why| wrong("body", Some(why)))?;
        Ok(Self { seq, body: body.ok_or_else(|| wrong("body", None))?.to_owned() })
    }

    fn all(rows: &[Row]) -> Result<Vec<Self>, StoreError> {
        rows.iter().map(Self::decode).collect()
    }

    /// The name of the key of the configuration that it is sealed with.
    fn sealed_with(&self) -> &str {
        Sealed::read(&self.body).map_or("", |sealed| sealed.key)
    }

    /// Its secret in base64.
    fn opened(&self, keys: &EncryptionKeys) -> Option<String> {
        let sealed = Sealed::read(&self.body)?;
        keys.find(sealed.key)?.open(sealed, place(&self.seq.to_string()))
    }

    fn key(&self, keys: &EncryptionKeys) -> Option<SealingKey> {
        let secret = BASE64_STANDARD.decode(self.opened(keys)?).ok()?;
        let secret: [u8; SECRET_LEN] = secret.try_into().ok()?;
        Some(SealingKey::new(self.seq.to_string(), &secret))
    }
}

fn place(row: &str) -> Place<'_> {
    Place { table: TABLE, column: "body", row }
}

/// The keys that are known, and which of them seals.
#[derive(Default)]
pub(super) struct KnownKeys {
    keys: HashMap<String, SealingKey>,
    sealing: Option<String>,
}

impl KnownKeys {
    /// The key of this name.
    pub(super) fn find(&self, id: &str) -> Option<&SealingKey> {
        self.keys.get(id)
    }

    fn sealing(&self) -> Option<&SealingKey> {
        self.find(self.sealing.as_deref()?)
    }
}

/// See the module.
pub(crate) struct Keyring {
    keys: EncryptionKeys,
    known: RwLock<Arc<KnownKeys>>,
    random: SystemRandom,
}

impl Keyring {
    /// Reads the data keys; `None` when there are none and no key is configured.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when the configuration does not have what the database was sealed with.
    pub(crate) async fn read(
        reader: &Readers,
        keys: Option<&EncryptionKeys>,
    ) -> Result<Option<Arc<Self>>, StoreError> {
        let rows = DataKey::all(&reader.read(READ, &sql::SELECT_DATA_KEYS, Args::Values(&[])).await?)?;
        fits(keys, &rows)?;
        let Some(keys) = keys else { return Ok(None) };
        let ring = Self { keys: keys.clone(), known: RwLock::default(), random: SystemRandom::new() };
        ring.learn(&rows);
        Ok(Some(Arc::new(ring)))
    }

    /// Returns the data keys that are known now.
    pub(super) fn known(&self) -> Arc<KnownKeys> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes rows of `data_keys` in. One that no configured key opens is left out: what is sealed with it says so.
    fn learn(&self, rows: &[DataKey]) {
        let current = self.keys.id();
        let keys: HashMap<String, SealingKey> =
            rows.iter().filter_map(|row| row.key(&self.keys)).map(|key| (key.id.clone(), key)).collect();
        let newest = rows.iter().rfind(|row| row.sealed_with() == current).map(|row| row.seq.to_string());
        let sealing = newest.filter(|id| keys.contains_key(id));
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(KnownKeys { keys, sealing });
    }

    /// As [`Keyring::learn`], of rows as they come.
    pub(crate) fn learn_rows(&self, rows: &[Row]) -> Result<(), StoreError> {
        self.learn(&DataKey::all(rows)?);
        Ok(())
    }

    /// Seals a text.
    pub(super) fn seal(&self, clear: &str, place: Place<'_>) -> Result<String, StoreError> {
        let known = self.known();
        let Some(key) = known.sealing() else {
            let message = "no data key was made".to_owned();
            return Err(StoreError::Database { action: "seal a value", message });
        };
        key.seal(&self.random, clear, place)
    }

    /// Returns true when there is a data key to seal with.
    pub(crate) fn can_seal(&self) -> bool {
        self.known().sealing.is_some()
    }

    /// Makes a data key under the current key of the configuration, unless there is one, and seals those of other keys
    /// with it, in a transaction of its own.
    pub(crate) async fn take_up(&self, session: &mut dyn Connection) -> Result<(), StoreError> {
        session.begin(Durability::AtOnce).await?;
        match self.make(session).await {
            Ok(rows) => match session.commit(None).await {
                Ok(()) => self.learn(&rows),
                // Whether it was committed is seen by the next attempt, which looks first.
                Err(
                    CommitError::Refused(error) | CommitError::Failed(error) | CommitError::Unknown(error),
                ) => return Err(error),
            },
            Err(error) => {
                session.rollback().await;
                return Err(error);
            }
        }
        tracing::info!(key = self.keys.id(), "what is written from now on is sealed with this key");
        Ok(())
    }

    async fn make(&self, session: &mut dyn Connection) -> Result<Vec<DataKey>, StoreError> {
        let current = self.keys.current();
        let mut rows = self.rows(session).await?;
        for _ in 0..TRIES {
            if rows.iter().any(|row| row.sealed_with() == current.id) {
                break;
            }
            let seq = rows.last().map_or(0, |row| row.seq) + 1;
            let body = current.seal(&self.random, &self.secret()?, place(&seq.to_string()))?;
            let values = [seq.into(), body.as_str().into()];
            session.execute("make a data key", &sql::INSERT_DATA_KEY, Args::Values(&values)).await?;
            rows = self.rows(session).await?;
        }
        for row in rows.iter_mut().filter(|row| row.sealed_with() != current.id) {
            let Some(secret) = row.opened(&self.keys) else { continue };
            row.body = current.seal(&self.random, &secret, place(&row.seq.to_string()))?;
            let values = [row.seq.into(), row.body.as_str().into()];
            session.execute("seal a data key", &sql::UPDATE_DATA_KEY, Args::Values(&values)).await?;
        }
        Ok(rows)
    }

    async fn rows(&self, session: &mut dyn Connection) -> Result<Vec<DataKey>, StoreError> {
        let rows = DataKey::all(&session.rows(READ, &sql::SELECT_DATA_KEYS, Args::Values(&[])).await?)?;
        fits(Some(&self.keys), &rows)?;
        Ok(rows)
    }

    fn secret(&self) -> Result<String, StoreError> {
        let mut secret = [0; SECRET_LEN];
        let filled = self.random.fill(&mut secret);
        let message = || "the system gives no random bytes".to_owned();
        filled.map_err(|_| StoreError::Database { action: "make a data key", message: message() })?;
        Ok(BASE64_STANDARD.encode(secret))
    }
}

/// Refuses a database that these keys do not open.
fn fits(keys: Option<&EncryptionKeys>, rows: &[DataKey]) -> Result<(), StoreError> {
    let Some(keys) = keys else {
        return match rows.last() {
            None => Ok(()),
            Some(row) => Err(StoreError::Misconfigured(format!(
                "the database is encrypted at rest with key {}, and no key is configured: give `key` in [encryption]; \
                 nothing was changed",
                row.sealed_with()
            ))),
        };
    };
    let Some(row) = rows.iter().find(|row| row.key(keys).is_none()) else { return Ok(()) };
    let (with, ours) = (row.sealed_with(), keys.ids().join(", "));
    Err(if keys.find(with).is_none() {
        StoreError::Misconfigured(format!(
            "the database is encrypted at rest with key {with}, which is none of the configured ones ({ours}): give it \
             as `key` or in `previous` of [encryption]; nothing was changed"
        ))
    } else {
        StoreError::Unfit(format!(
            "data key {} of the database (table {TABLE}) is damaged, and with it what it sealed: restore that table from \
             a backup; nothing was changed",
            row.seq
        ))
    })
}

/// Returns what `doctor` reports about the encryption of a database with these data keys.
pub(crate) fn finding(keys: Option<&EncryptionKeys>, rows: &[DataKey]) -> Finding {
    if let Err(error) = fits(keys, rows) {
        let advice =
            "give all processes the same [encryption]; `turnstone config show` says where it comes from";
        return Finding::bad(error.to_string(), advice);
    }
    let Some(keys) = keys else {
        return Finding::good("what is stored is not encrypted at rest: no [encryption] key is configured");
    };
    let id = keys.id();
    let olds = rows.iter().filter(|row| row.sealed_with() != id).count();
    Finding::good(match (rows.len(), olds) {
        (0, _) => format!("what is written from now on is encrypted at rest with key {id}"),
        (_, 0) => format!("what is stored is encrypted at rest with key {id}, and no other key is needed"),
        (_, _) => format!(
            "what is stored is encrypted at rest with an older key; the next write takes up key {id}, and `previous` is \
             needed until then"
        ),
    })
}
