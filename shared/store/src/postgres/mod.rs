//! The fleet's store: PostgreSQL, written by any number of processes at once.
//!
//! No state lives in a session: no lock, no temporary table, nothing set. So it works through a pooler in transaction
//! mode, and a connection that breaks takes nothing with it.

mod clock;
mod connection;
mod counters;
mod fitness;
mod joined;
mod migrate;
mod packed;
mod readers;
mod relay;
mod replication;
mod session;
mod sqlstate;

pub use counters::Counters;
pub use fitness::Finding;

pub(crate) use readers::Readers;
pub(crate) use session::Writing;

use crate::cipher::Keyring;
use crate::engine;
use crate::engine::session::{Reader, Readers as AnyReaders, Session};
use crate::limits::database::DatabaseLimits;
use crate::migrations::{MigrationFile, POSTGRES};
use crate::{DamagedValue, EncryptionKeys, Inspected, Store, StoreError};
use async_recursion::async_recursion as boxed;
use clock::DatabaseClock;
use connection::Address;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::{Clock, Ids};

/// How much later than the end of its longest statement an answer of the database may be.
const LATER: Duration = Duration::from_secs(5);

/// How to reach the database and how to use it.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database`; it may hold a password and is never shown. With several hosts
    /// (`a:5432,b:5432`) the process uses the one that takes writes.
    pub url: String,
    /// The most connections that read.
    pub connections: u32,
    /// Connections that write; each shares its commits between all who wait.
    pub writers: u32,
    /// True with a pooler in transaction mode between: no prepared statement outlives its transaction, and nothing
    /// listens.
    pub transaction_pooler: bool,
    /// True when processes notify one another through `LISTEN` and `NOTIFY`. Without it every process polls.
    pub listen: bool,
    /// The longest that one statement may take, migrations aside; the database ends it then.
    pub statement_timeout: Duration,
    /// How long work under a lease waits for one answer before it is tried again on a new connection: a third of the
    /// lease. An answer that was lost is looked up then.
    pub answer: Duration,
    /// The keys that what is stored is encrypted with; without them it stays in the clear.
    pub encryption: Option<EncryptionKeys>,
}

impl PostgresOptions {
    /// Returns the defaults for this address: 8 connections that read, 2 that write, notifications through the
    /// database, nothing encrypted. A statement may take 25 seconds, and an answer under a lease 5.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: 8,
            writers: 2,
            transaction_pooler: false,
            listen: true,
            statement_timeout: Duration::from_secs(25),
            answer: Duration::from_secs(5),
            encryption: None,
        }
    }

    /// Checks the form of the address; nothing is connected to.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when it is no address of a PostgreSQL database.
    pub fn check_address(&self) -> Result<(), StoreError> {
        Address::of(self).map(|_| ())
    }

    fn listens(&self) -> bool {
        self.listen && !self.transaction_pooler
    }

    /// Longer than the database lets a statement run: a later answer never arrives.
    fn longest_answer(&self) -> Duration {
        self.statement_timeout + LATER
    }
}

/// The fleet's store.
#[derive(Clone, Copy, Debug)]
pub struct PostgresStore;

impl PostgresStore {
    /// Connects and starts the writers on the current runtime. The clock is the database's time, so that processes
    /// agree on it whatever their machines say.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the database does not answer. [`StoreError::Unfit`] when it answers but
    /// cannot be used: missing migrations, a newer schema, a read-only standby, or an encryption key that is
    /// missing. Nothing is changed.
    #[boxed]
    pub async fn open(
        options: &PostgresOptions,
        ids: Arc<dyn Ids>,
    ) -> Result<(Store, Arc<dyn Clock>), StoreError> {
        let address = Address::of(options)?;
        let mut first = address.connect().await?;
        fitness::takes_writes(&mut first).await?;
        fitness::schema_fits(&mut first).await?;
        let readers = Readers::new(&address, options);
        let of_engine = AnyReaders::Postgres(readers.clone());
        let ring = Keyring::read(&of_engine, options.encryption.as_ref()).await?;
        let clock: Arc<dyn Clock> = DatabaseClock::start(&mut first, readers.clone()).await?;
        let session = |conn, ring| {
            let writing = Writing::new(address.clone(), options, &ids, conn);
            Session::new(writing, ring, Arc::clone(&ids))
        };
        let others = (1..options.writers.max(1)).map(|_| None);
        let sessions = std::iter::once(Some(first)).chain(others).map(|conn| session(conn, ring.clone()));
        let limits = Arc::new(DatabaseLimits::new(of_engine.clone()));
        // Rows that a statement makes would not be sealed.
        let claims = ring.is_none().then(|| session(None, None));
        let sessions = sessions.collect();
        let store = engine::start(Reader::new(of_engine, ring.clone()), sessions, claims, &ids, limits)?;
        if options.listens() {
            relay::start(&readers, &store.doorbell, ids.next());
        }
        Ok((store, clock))
    }

    /// Brings the schema up to date and makes the queues known; returns the names of the migrations it applied.
    ///
    /// # Errors
    /// As [`PostgresStore::apply`].
    pub async fn migrate(options: &PostgresOptions, queues: &[String]) -> Result<Vec<String>, StoreError> {
        let names = Self::apply(options, POSTGRES).await?;
        session::remember_queues(&mut Address::of(options)?.connect_unhurried().await?, queues).await?;
        Ok(names)
    }

    /// Applies those of these migrations that the database lacks, while a fleet may use it, and returns their names. No
    /// statement of the fleet waits longer than two seconds for a migration; a migration that meets a longer lock is tried
    /// again for 15 minutes.
    ///
    /// # Errors
    /// As [`PostgresStore::open`]; and when a migration fails, which leaves the database as it was. One that runs outside
    /// of a transaction leaves its finished statements, and continues after them when it is applied again.
    #[boxed]
    pub async fn apply(
        options: &PostgresOptions,
        files: &[MigrationFile],
    ) -> Result<Vec<String>, StoreError> {
        migrate::migrate(&Address::of(options)?, files).await
    }

    /// Reads everything that is stored, and reports what cannot be read as soon as it is found. Nothing is changed.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    #[boxed]
    pub async fn inspect(
        options: &PostgresOptions,
        report: &mut (dyn FnMut(DamagedValue) + Send),
    ) -> Result<Inspected, StoreError> {
        let address = Address::of(options)?;
        fitness::schema_fits(&mut address.connect().await?).await?;
        // Its statements read whole tables.
        let unhurried = PostgresOptions { answer: options.longest_answer(), ..options.clone() };
        let readers = AnyReaders::Postgres(Readers::new(&address, &unhurried));
        let ring = Keyring::read(&readers, options.encryption.as_ref()).await?;
        engine::inspect::inspect(&Reader::new(readers, ring), report).await
    }

    /// Looks at everything that could be wrong with the database, without changing anything.
    #[boxed]
    pub async fn check(options: &PostgresOptions) -> Vec<Finding> {
        fitness::check(options).await
    }

    /// Reads what the server counts of its own work.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it does not answer.
    #[boxed]
    pub async fn counters(options: &PostgresOptions) -> Result<Counters, StoreError> {
        counters::read(options).await
    }
}
