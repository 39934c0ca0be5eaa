//! A gate in the database at which transactions wait, so that a fault comes at a known moment.

use super::site::Site;
use sqlx::{Connection as _, PgConnection};

/// A gate. It is shut until [`Gate::open`].
pub struct Gate {
    keeper: PgConnection,
}

/// Transactions that wait at the gate.
const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'advisory'";

impl Gate {
    /// Makes every transaction that enqueues a job wait in its commit.
    pub async fn in_commits(site: &Site) -> Self {
        Self::shut(site, "CONSTRAINT TRIGGER gate AFTER INSERT ON jobs DEFERRABLE INITIALLY DEFERRED", "")
            .await
    }

    /// Makes every transaction that writes a checkpoint wait in its middle.
    pub async fn at_checkpoints(site: &Site) -> Self {
        Self::shut(site, "TRIGGER gate AFTER INSERT ON journal", "WHEN (NEW.phases > 0)").await
    }

    /// Makes every transaction that claims or settles a job wait in its middle.
    pub async fn at_leases(site: &Site) -> Self {
        Self::shut(site, "TRIGGER gate AFTER UPDATE OF lease_token ON jobs", "").await
    }

    async fn shut(site: &Site, trigger: &str, condition: &str) -> Self {
        let made = format!(
            "CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END';\n\
             CREATE {trigger} FOR EACH ROW {condition} EXECUTE FUNCTION pass();"
        );
        site.postgres.psql(&site.database, &made).await;
        Self::again(site).await
    }

    /// Shuts a gate that was made before and opened.
    pub async fn again(site: &Site) -> Self {
        let mut keeper = PgConnection::connect(&site.database.url).await.expect("a connection");
        sqlx::query("SELECT pg_advisory_lock(7)").execute(&mut keeper).await.expect("the gate's lock");
        Self { keeper }
    }

    /// Waits until a transaction waits at the gate.
    pub async fn reached(&self, site: &Site) {
        site.until("a transaction waits at the gate", WAITING, |waiting| waiting > 0).await;
    }

    /// Ends the connections of the waiting transactions.
    pub async fn terminate_waiting(&self, site: &Site) {
        let ended = WAITING.replace("count(*)", "count(pg_terminate_backend(pid))");
        assert!(site.number(&ended).await > 0, "no transaction waited");
    }

    /// Lets all transactions pass, now and later.
    pub async fn open(self) {
        self.keeper.close().await.expect("the gate's lock is given back");
    }
}
