//! The store that the processes of a fleet share.

use crate::config::{Config, address};
use crate::failure::Failure;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Clock, Ids};
use turnstone_store::limits::{FleetwideLimits, RateLimits};
use turnstone_store::redis::{self, RedisLimits, RedisRelay};
use turnstone_store::{PostgresOptions, PostgresStore, Store, StoreError};
use turnstone_telemetry::{Secret, environment};

/// The store of a fleet's process, with the time and the ids that belong to it.
pub struct Ground {
    /// The store, which connects the parts of the fleet.
    pub store: Store,
    /// The time of the database, so that a wrong clock of a machine has no effect.
    pub clock: Arc<dyn Clock>,
    /// The source of ids.
    pub ids: Arc<dyn Ids>,
}

impl Ground {
    /// Opens the configured database. It must have been migrated.
    ///
    /// # Errors
    /// It is not PostgreSQL, cannot be reached, or has not been migrated to this version.
    pub async fn open(config: &Config) -> anyhow::Result<Self> {
        let options = options(config)?;
        let ids: Arc<dyn Ids> = Arc::new(SystemIds);
        let (store, clock) = PostgresStore::open(&options, Arc::clone(&ids)).await.map_err(refused)?;
        Ok(Self { store, clock, ids })
    }

    /// Opens the same for a service, with the configured Redis, if there is one, as accelerator.
    ///
    /// # Errors
    /// As [`Ground::open`]. Also when a configured Redis cannot be reached or evicts keys.
    pub async fn join(config: &Config) -> anyhow::Result<Self> {
        let redis = redis_url(config)?;
        if let Some(url) = &redis {
            redis::demand(url).await.map_err(refused)?;
        }
        let mut ground = Self::open(config).await?;
        let store = &mut ground.store;
        let (place, limits): (_, Arc<dyn RateLimits>) = match &redis {
            None => ("the database", Arc::clone(&store.limits)),
            Some(url) => {
                RedisRelay::start(url, &store.doorbell, ground.ids.as_ref()).map_err(refused)?;
                ("Redis", Arc::new(RedisLimits::new(url).map_err(refused)?))
            }
        };
        store.limits = Arc::new(FleetwideLimits::new(place, limits, store.views.clone()));
        Ok(ground)
    }
}

/// Returns the address of the configured Redis.
///
/// # Errors
/// The reference cannot be resolved.
pub fn redis_url(config: &Config) -> Result<Option<String>, Failure> {
    let url = config.redis.url.as_ref().map(|url| url.resolve()).transpose();
    url.map_err(|problem| Failure::usage(format!("`redis.url`: {problem}")))
}

/// The least time that work under a lease waits for an answer of the database, else a third of the lease: a busy database needs it.
const SHORTEST_ANSWER: Duration = Duration::from_secs(2);
/// The most time for it: a silent connection is found by then, whatever the lease is.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// Returns the options for reaching the configured database.
///
/// # Errors
/// None is configured, or it is no PostgreSQL.
pub fn options(config: &Config) -> Result<PostgresOptions, Failure> {
    let store = &config.store;
    let embedded = || {
        Failure::usage("the embedded store serves one process; use `turnstone dev`, or give DATABASE_URL")
            .hint("DATABASE_URL=postgres://user@host/database, or `url` in [store] of turnstone.toml")
    };
    let url = store.url.as_ref().ok_or_else(embedded)?;
    let url = url.resolve().map_err(|problem| Failure::usage(format!("`store.url`: {problem}")))?;
    match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => Ok(PostgresOptions {
            url: with_password(url),
            connections: store.connections,
            writers: store.writers,
            transaction_pooler: store.transaction_pooler,
            statement_timeout: Duration::from_millis(store.statement_timeout_ms),
            listen: store.listen,
            answer: (Duration::from_millis(config.worker.lease_ms) / 3).clamp(SHORTEST_ANSWER, LONGEST_ANSWER),
            encryption: config.encryption.keys()?,
        }),
        Some("sqlite" | "file") => Err(embedded()),
        _ => Err(Failure::usage("`store.url` is not the address of a PostgreSQL database")
            .hint("write it like postgres://user:password@host:5432/database; `turnstone config show` says where it comes from")),
    }
}

/// Adds `PGPASSWORD` to an address without a password. The driver reads it from the environment alone, and a serving process
/// moves secrets out of it.
fn with_password(url: String) -> String {
    let Some((mut parsed, _)) = address::parse(&url) else { return url };
    let has_one = parsed.password().is_some() || parsed.query_pairs().any(|(name, _)| name == "password");
    match environment::var("PGPASSWORD") {
        Some(password) if !has_one && !password.is_empty() => {
            parsed.query_pairs_mut().append_pair("password", Secret::given(password).expose());
            let (place, query) = (url.split(['?', '#']).next(), parsed.query());
            format!("{}?{}", place.unwrap_or_default(), query.unwrap_or_default())
        }
        _ => url,
    }
}

/// Returns a store's refusal with the next step.
#[must_use]
pub fn refused(error: StoreError) -> Failure {
    let failure = Failure::failed(error.to_string());
    match error {
        StoreError::Misconfigured(problem) => Failure::usage(problem),
        // The message itself contains the next step.
        StoreError::Unfit(_) | StoreError::WorkerNameTaken { .. } => failure,
        _ => failure.hint("`turnstone doctor` checks the configuration and the database, and suggests fixes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    fn refusal(url: Option<&str>) -> Failure {
        let mut config = Config::default();
        config.store.url = url.map(|url| serde_json::from_value(url.into()).unwrap());
        options(&config).err().unwrap()
    }

    #[test]
    fn a_fleet_needs_postgresql() {
        for url in [None, Some("sqlite:///tmp/t.db")] {
            let failure = refusal(url);
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains("`turnstone dev`, or give DATABASE_URL"), "{failure}");
        }
        for url in ["mysql://ann:pass-word-of-ann@db/t", "db.internal"] {
            let failure = refusal(Some(url));
            assert!(failure.message.contains("not the address of a PostgreSQL"), "{failure}");
            assert!(!format!("{failure:?}").contains("pass-word-of-ann"), "{failure:?}");
        }
    }
}
