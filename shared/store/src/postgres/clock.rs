//! The database's time, read now and then, and carried on by a monotonic clock in between.

use super::connection::failed;
use super::session::Readers;
use crate::{StoreError, sql};
use sqlx::postgres::PgConnection;
use sqlx::{PgExecutor, Row};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;
use turnstone_domain::{Clock, Timestamp};

/// How often the two clocks are compared.
const COMPARE: Duration = Duration::from_secs(30);
/// How soon the comparing ends after the last user of the clock has.
const LOOK: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct DatabaseClock {
    begun: Instant,
    /// The database's time at `begun`, in milliseconds.
    base: AtomicI64,
}

impl DatabaseClock {
    /// Asks the database once, and compares from then on for as long as the clock is used.
    pub(super) async fn start(conn: &mut PgConnection, readers: Readers) -> Result<Arc<Self>, StoreError> {
        let begun = Instant::now();
        let now = time(conn).await.map_err(failed("read the time"))?;
        let clock = Arc::new(Self { base: AtomicI64::new(now - millis(begun.elapsed()) / 2), begun });
        tokio::spawn(compare(Arc::downgrade(&clock), readers));
        Ok(clock)
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.base.load(Ordering::Relaxed) + millis(self.begun.elapsed()))
    }
}

/// The database's time. One message asks for it: through a pooler in transaction mode two might part.
async fn time(conn: impl PgExecutor<'_>) -> Result<i64, sqlx::Error> {
    sqlx::raw_sql(sql::SELECT_CLOCK.postgres).fetch_one(conn).await?.try_get(0)
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

async fn compare(clock: Weak<DatabaseClock>, readers: Readers) {
    let mut compared = Instant::now();
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(clock) = clock.upgrade() else { return };
        if compared.elapsed() < COMPARE {
            continue;
        }
        compared = Instant::now();
        let requested = Instant::now();
        let answer = time(readers.pool()).await;
        let took = requested.elapsed();
        // A slow answer says little about the time, and a silent database nothing: the next one will do.
        if let Ok(now) = answer
            && took < Duration::from_millis(200)
        {
            let at = requested.duration_since(clock.begun) + took / 2;
            clock.base.store(now - millis(at), Ordering::Relaxed);
        }
    }
}
