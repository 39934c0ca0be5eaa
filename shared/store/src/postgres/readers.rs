//! The connections that read: a pool whose sessions are closed as soon as they cannot serve.
//!
//! A statement that changes nothing runs again on another connection when its own breaks. A connection whose statement was
//! abandoned, by a deadline or by its caller, is closed: its answer may still be on its way.

use super::PostgresOptions;
use super::connection::{Address, Live, answer_within, failed};
use super::session::{BoundQuery, bound};
use super::sqlstate::SessionVerdict;
use crate::StoreError;
use crate::engine::session::{Args, Row};
use crate::sql::Text;
use backon::{BackoffBuilder, ExponentialBuilder};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long a connection that reads is taken for alive after it was used.
const TRUSTED: Duration = Duration::from_secs(1);
/// How long a read waits for a connection, and for a database that does not take any.
const ACQUIRE: Duration = Duration::from_secs(10);
/// How many connections may break under one read before it fails.
const ATTEMPTS: usize = 5;
/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(600);

/// The connections that read.
#[derive(Clone)]
pub(crate) struct Readers {
    address: Address,
    places: Arc<Semaphore>,
    idle: Arc<Idle>,
    /// The begin of a transaction for each read, behind a pooler.
    begin: Option<Arc<str>>,
    /// How long the first connection has to answer; another one has [`Readers::longest`].
    answer: Duration,
    /// Longer than the database lets a statement run.
    longest: Duration,
}

/// Connections that no read uses, the one that was used last at the end.
#[derive(Default)]
struct Idle(Mutex<Vec<(Live, Instant)>>);

impl Idle {
    fn all(&self) -> MutexGuard<'_, Vec<(Live, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the connection that was used last.
    fn take(&self) -> Option<Live> {
        self.all().pop().map(|(live, _)| live)
    }

    /// Keeps a connection, and closes those that were idle for long.
    fn keep(&self, live: Live) {
        let mut all = self.all();
        all.push((live, Instant::now()));
        all.retain(|(_, since)| since.elapsed() < IDLE);
    }
}

/// A connection that a read uses. It is closed unless it is given back.
struct Lent {
    live: Live,
    _place: OwnedSemaphorePermit,
}

/// Why an attempt failed.
enum ReadFailure {
    /// No connection was made.
    NotConnected(StoreError),
    /// The statement failed.
    Failed(sqlx::Error, SessionVerdict),
}

impl Readers {
    pub(super) fn new(address: &Address, options: &PostgresOptions) -> Self {
        // The listener has a connection of its own, and leaves one.
        let places = options.connections.saturating_sub(u32::from(options.listens())).max(1);
        Self {
            address: address.clone(),
            places: Arc::new(Semaphore::new(usize::try_from(places).unwrap_or(1))),
            idle: Arc::default(),
            begin: options.transaction_pooler.then(|| address.begin_reading().into()),
            answer: options.answer,
            longest: options.longest_answer(),
        }
    }

    /// Returns the options of the connection that listens.
    pub(super) fn options(&self) -> PgConnectOptions {
        self.address.options()
    }

    pub(crate) async fn read(
        &self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let rows = self.ask(action, || bound(text, args.clone(), self.begin.is_none())).await?;
        Ok(rows.into_iter().map(Row::from).collect())
    }

    /// Runs a statement that may run twice, and returns its rows. While connections break it tries others.
    pub(super) async fn ask(
        &self,
        action: &'static str,
        query: impl Fn() -> BoundQuery,
    ) -> Result<Vec<PgRow>, StoreError> {
        let begun = Instant::now();
        let mut pauses = pauses().build();
        let (mut broken, mut answer) = (0, self.answer);
        loop {
            let error = match self.attempt(query(), answer).await {
                Ok(rows) => return Ok(rows),
                Err(ReadFailure::NotConnected(error @ StoreError::Unavailable { .. }))
                    if begun.elapsed() < ACQUIRE =>
                {
                    error
                }
                Err(ReadFailure::NotConnected(error)) => return Err(error),
                Err(ReadFailure::Failed(error, verdict)) => {
                    broken += 1;
                    let error = failed(action)(error);
                    if !verdict.needs_new_session() || broken >= ATTEMPTS {
                        return Err(error);
                    }
                    // A slow statement and a silent network look alike; the next connection answers at once or is slow.
                    answer = self.longest;
                    error
                }
            };
            tracing::debug!(%error, "a read is repeated on another connection");
            tokio::time::sleep(pauses.next().unwrap_or(TRUSTED)).await;
        }
    }

    /// Runs one message of a statement that reads, as [`Readers::ask`] does.
    pub(super) async fn ask_raw(
        &self,
        action: &'static str,
        text: &'static str,
    ) -> Result<Vec<PgRow>, StoreError> {
        let mut lent = self.lend().await.map_err(|failure| match failure {
            ReadFailure::NotConnected(error) => error,
            ReadFailure::Failed(error, _) => failed(action)(error),
        })?;
        let answer = answer_within(self.answer, sqlx::raw_sql(text).fetch_all(&mut lent.live.conn)).await;
        self.judged(lent, answer).map_err(|(error, _)| failed(action)(error))
    }

    async fn attempt(&self, query: BoundQuery, answer: Duration) -> Result<Vec<PgRow>, ReadFailure> {
        let mut lent = self.lend().await?;
        let answer = answer_within(answer, self.run(&mut lent.live.conn, query)).await;
        self.judged(lent, answer).map_err(|(error, verdict)| ReadFailure::Failed(error, verdict))
    }

    async fn run(&self, conn: &mut PgConnection, query: BoundQuery) -> Result<Vec<PgRow>, sqlx::Error> {
        let Some(begin) = &self.begin else { return query.fetch_all(conn).await };
        // Through a pooler a statement and its execution stay together only within a transaction.
        let mut tx = conn.begin_with(AssertSqlSafe(begin.to_string())).await?;
        let rows = query.fetch_all(&mut *tx).await;
        // The pooler takes its session back only at the end of the transaction.
        if rows.is_ok() {
            tx.commit().await?
        } else {
            tx.rollback().await?
        }
        rows
    }

    /// Lends a connection that can be trusted.
    async fn lend(&self) -> Result<Lent, ReadFailure> {
        let place = tokio::time::timeout(ACQUIRE, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(ReadFailure::Failed(sqlx::Error::PoolTimedOut, SessionVerdict::Retry));
        };
        while let Some(live) = self.idle.take() {
            if let Some(live) = self.address.trusted(live, TRUSTED).await {
                return Ok(Lent { live, _place: place });
            }
        }
        let live = self.address.connect_in_service(false).await.map_err(ReadFailure::NotConnected)?;
        Ok(Lent { live, _place: place })
    }

    /// Gives a connection back if it serves further reads.
    fn judged<T>(
        &self,
        mut lent: Lent,
        answer: Result<T, sqlx::Error>,
    ) -> Result<T, (sqlx::Error, SessionVerdict)> {
        let answer = answer.map_err(|error| {
            let verdict = self.address.judge(&error, lent.live.born);
            (error, verdict)
        });
        if answer.as_ref().err().is_none_or(|(_, verdict)| verdict.keeps_session()) {
            lent.live.answered();
            self.idle.keep(lent.live);
        }
        answer
    }
}

fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(10))
        .with_max_delay(Duration::from_millis(500))
        .without_max_times()
}
