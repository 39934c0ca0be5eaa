//! Connecting, and telling errors that pass from errors that stay.

use super::PostgresOptions;
use crate::StoreError;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use std::str::FromStr;
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);

/// Settings of the connections that write. Statements are joined from many parts: planning one anew for each commit
/// would cost more than running it. A plan is made once and kept, perhaps while the tables are empty. It must not
/// read a whole table or sort it for a join, so rows are looked up by index. Where it has to, its estimated cost would
/// have PostgreSQL compile it (`jit`), for a second or more. A process that falls silent in the middle of a transaction
/// (paused, cut off) must not keep rows locked: the database ends it soon.
const WRITING: [(&str, &str); 6] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    ("idle_in_transaction_session_timeout", "5s"),
];

/// Where the database is and how connections to it are made.
#[derive(Clone)]
pub(super) struct Address {
    options: PgConnectOptions,
    pooled: bool,
    /// The longest that one statement may take, in the database's words. The database ends it then, and its connection is
    /// free again.
    timeout: String,
}

impl Address {
    /// Reads the address.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when it is no address of a PostgreSQL database. The message does not show it: it may
    /// hold a password.
    pub(super) fn of(options: &PostgresOptions) -> Result<Self, StoreError> {
        let unfit = |why: &str| {
            StoreError::Misconfigured(format!(
                "the database address is not usable: {why}. It has the form postgres://user:password@host:5432/database"
            ))
        };
        if !["postgres://", "postgresql://"].iter().any(|scheme| options.url.starts_with(scheme)) {
            return Err(unfit("it does not begin with postgres://"));
        }
        let parsed = PgConnectOptions::from_str(&options.url).map_err(|e| unfit(&e.to_string()))?;
        let mut parsed = parsed.application_name("turnstone").disable_statement_logging();
        let timeout = format!("{}ms", options.statement_timeout.as_millis());
        // A pooler refuses start-up options, and hands one session to many clients.
        parsed = if options.transaction_pooler {
            parsed.statement_cache_capacity(0).extra_float_digits(None)
        } else {
            // Compiling a statement costs up to half a second, and no statement here runs long enough to earn that.
            parsed.options([("jit", "off"), ("statement_timeout", timeout.as_str())])
        };
        Ok(Self { options: parsed, pooled: options.transaction_pooler, timeout })
    }

    /// The options, for a pool or a listener.
    pub(super) fn options(&self) -> PgConnectOptions {
        self.options.clone()
    }

    /// `host:port/database`, without anything secret.
    pub(super) fn shown(&self) -> String {
        let database = self.options.get_database().unwrap_or("(default)");
        format!("{}:{}/{database}", self.options.get_host(), self.options.get_port())
    }

    /// The settings of what writes, for one transaction: no session is ours behind a pooler.
    pub(super) fn settings_of_transaction(&self) -> String {
        let timeout = std::iter::once(("statement_timeout", self.timeout.as_str()));
        let settings = WRITING.into_iter().chain(timeout);
        settings.map(|(name, value)| format!("SET LOCAL {name} = '{value}'; ")).collect()
    }

    /// The begin of a transaction that reads, behind a pooler.
    pub(super) fn begin_reading(&self) -> String {
        format!("BEGIN; SET LOCAL statement_timeout = '{}'", self.timeout)
    }

    /// Connects once, for migrations, whose statements take as long as they need.
    pub(super) async fn connect_unhurried(&self) -> Result<PgConnection, StoreError> {
        let mut conn = self.connect().await?;
        if !self.pooled {
            let text = "SET statement_timeout = 0";
            sqlx::raw_sql(text).execute(&mut conn).await.map_err(failed("be reached"))?;
        }
        Ok(conn)
    }

    /// Connects once, to write.
    pub(super) async fn connect(&self) -> Result<PgConnection, StoreError> {
        let options = self.options.clone();
        let options = if self.pooled { options } else { options.options(WRITING) };
        let unavailable = |message: String| StoreError::Unavailable { action: "be reached", message };
        match tokio::time::timeout(CONNECT, PgConnection::connect_with(&options)).await {
            Ok(Ok(conn)) => Ok(conn),
            Ok(Err(error)) => Err(refused(&self.shown(), error)),
            Err(_) => Err(unavailable(format!("{} did not answer within {CONNECT:?}", self.shown()))),
        }
    }
}

/// A connection that was not made: for good, or for now.
fn refused(place: &str, error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|e| e.code()).map(|code| code.into_owned());
    match code.as_deref() {
        Some("28P01" | "28000") => StoreError::Unfit(format!(
            "{place} refused the user or the password of the database address: {error}"
        )),
        Some("3D000") => StoreError::Unfit(format!(
            "there is no such database at {place}: create it (createdb), then run `turnstone migrate`"
        )),
        _ => StoreError::Unavailable { action: "be reached", message: format!("{place}: {error}") },
    }
}

/// A database error as ours: [`StoreError::Unavailable`] when trying again helps.
pub(super) fn failed(action: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| {
        let message = error.to_string();
        if passes(&error) {
            StoreError::Unavailable { action, message }
        } else {
            StoreError::Database { action, message }
        }
    }
}

/// Returns true for an error that passes:
///
/// - broken connections (08), resources (53), shutdown and start-up (57P0x)
/// - serialization failures and deadlocks (40)
/// - a read-only server while a fail-over is under way (25006)
/// - a transaction that was silent for too long (25P03), and a statement that took too long (57014)
pub(super) fn passes(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            ["08", "40", "53", "57P"].iter().any(|class| code.starts_with(class))
                || ["25006", "25P03", "57014"].contains(&&*code)
        }),
        _ => false,
    }
}
