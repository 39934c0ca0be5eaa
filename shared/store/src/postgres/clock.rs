//! The database's time, read every second, and carried on by a monotonic clock in between.

use super::connection::failed;
use super::readers::Readers;
use crate::{StoreError, sql};
use sqlx::Row;
use sqlx::postgres::PgConnection;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;
use turnstone_domain::clock::Followed;
use turnstone_domain::{Clock, ClockSteps, Timestamp};

/// How often the two clocks are compared. All processes of a fleet adopt a step of the database's clock within twice
/// this of one another.
const COMPARE: Duration = Duration::from_secs(1);
/// The longest that a comparison may take. A connection that does not answer must not keep the clock from the next one.
const PATIENCE: Duration = Duration::from_secs(1);
/// The answer to a slower comparison corrects no drift.
const DRIFT: Duration = Duration::from_millis(200);

/// See the module.
pub(super) struct DatabaseClock {
    begun: Instant,
    /// The database's time at `begun`, in milliseconds.
    base: AtomicI64,
    followed: Mutex<Followed>,
}

impl DatabaseClock {
    /// Asks the database once, and compares from then on for as long as the clock is used.
    pub(super) async fn start(conn: &mut PgConnection, readers: Readers) -> Result<Arc<Self>, StoreError> {
        let begun = Instant::now();
        let now = time(conn).await.map_err(failed("read the time"))?;
        let base = now - millis(begun.elapsed()) / 2;
        let followed = Mutex::new(Followed::new(Timestamp(base), 0));
        let clock = Arc::new(Self { base: AtomicI64::new(base), begun, followed });
        tokio::spawn(compare(Arc::downgrade(&clock), readers));
        Ok(clock)
    }

    /// Adopts a time that was requested then and has just been received.
    fn adopt(&self, now: i64, requested: Instant) {
        let took = requested.elapsed();
        let at = millis(requested.duration_since(self.begun) + took / 2);
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let apart = now.saturating_sub(followed.at(at).0).unsigned_abs();
        // A slow answer says little about drift, but as much about a step.
        if took >= DRIFT && Duration::from_millis(apart) <= took + Duration::from_secs(1) {
            return;
        }
        if let Some(by_ms) = followed.compare(Timestamp(now), at) {
            tracing::warn!(
                by_ms,
                "the database's clock stepped; leases and attempts keep their lengths, and due times follow the clock"
            );
        }
        // The step is known before the first time after it is.
        self.base.store(followed.at(0).0, Ordering::Release);
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.base.load(Ordering::Acquire) + millis(self.begun.elapsed()))
    }

    fn steps(&self) -> ClockSteps {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).steps()
    }
}

/// The database's time. One message asks for it: through a pooler in transaction mode two might part.
async fn time(conn: &mut PgConnection) -> Result<i64, sqlx::Error> {
    sqlx::raw_sql(sql::SELECT_CLOCK.postgres).fetch_one(conn).await?.try_get(0)
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

async fn compare(clock: Weak<DatabaseClock>, readers: Readers) {
    loop {
        tokio::time::sleep(COMPARE).await;
        let Some(clock) = clock.upgrade() else { return };
        let requested = Instant::now();
        // A silent database says nothing: the next answer will do.
        let asked = readers.ask_raw("read the time", sql::SELECT_CLOCK.postgres);
        let answer = tokio::time::timeout(PATIENCE, asked).await.ok().and_then(Result::ok);
        if let Some(now) = answer.and_then(|rows| rows.first()?.try_get::<i64, _>(0).ok()) {
            clock.adopt(now, requested);
        }
    }
}
