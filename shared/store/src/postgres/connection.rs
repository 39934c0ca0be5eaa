//! Connecting to the host that takes writes, and deciding when a session is no longer trusted.

use super::PostgresOptions;
use super::fitness;
use super::sqlstate::SessionVerdict;
use crate::StoreError;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};
use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a connection to one host may take to be made. An attempt that began before a network returned ends soon after.
pub(super) const CONNECT: Duration = Duration::from_secs(3);
/// How long a session that may be broken has to answer before a new one replaces it.
const PING: Duration = Duration::from_secs(2);

/// Settings of every session, unless a pooler is in between. The server ends a statement whose client has left, and a session
/// whose client is silently cut off, so that neither holds locks or places for long.
const EVERY: [(&str, &str); 6] = [
    // Compiling a statement costs up to half a second, and no statement here runs long enough to earn that.
    ("jit", "off"),
    ("client_connection_check_interval", "2s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "20s"),
];

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

/// Where the database is and how connections to it are made. All copies share what is known of its hosts and sessions.
#[derive(Clone)]
pub(super) struct Address {
    /// One per host of the address.
    hosts: Arc<[PgConnectOptions]>,
    pooled: bool,
    /// The longest that one statement may take, in the database's words. The database ends it then, and its connection is
    /// free again.
    timeout: String,
    known: Arc<Known>,
}

/// The knowledge of a process about its sessions.
#[derive(Default)]
struct Known {
    /// The place of the host that took writes last.
    host: AtomicUsize,
    doubts: Mutex<Doubts>,
}

#[derive(Clone, Copy, Default)]
struct Doubts {
    /// The last time at which a session was found broken. Sessions that were not heard since may be broken, too.
    broken: Option<Instant>,
    /// The last time at which a session was found unable to serve for a reason that all have in common. Sessions that were made
    /// before are closed.
    outdated: Option<Instant>,
}

impl Known {
    fn doubts(&self) -> MutexGuard<'_, Doubts> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection, with the times by which it is trusted.
pub(super) struct Live {
    pub(super) conn: PgConnection,
    pub(super) born: Instant,
    heard: Instant,
}

impl Live {
    pub(super) fn new(conn: PgConnection) -> Self {
        let now = Instant::now();
        Self { conn, born: now, heard: now }
    }

    /// Notes that the server answered.
    pub(super) fn answered(&mut self) {
        self.heard = Instant::now();
    }
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
        let timeout = format!("{}ms", options.statement_timeout.as_millis());
        let host = |url: String| -> Result<PgConnectOptions, StoreError> {
            let parsed = PgConnectOptions::from_str(&url).map_err(|e| unfit(&e.to_string()))?;
            let parsed = parsed.application_name("turnstone").disable_statement_logging();
            // A pooler refuses start-up options, and hands one session to many clients.
            Ok(if options.transaction_pooler {
                parsed.statement_cache_capacity(0).extra_float_digits(None)
            } else {
                parsed.options(EVERY).options([("statement_timeout", timeout.as_str())])
            })
        };
        let hosts = each_host(&options.url).into_iter().map(host).collect::<Result<Arc<[_]>, _>>()?;
        Ok(Self { hosts, pooled: options.transaction_pooler, timeout, known: Arc::default() })
    }

    /// The options of the host that took writes last, for a listener.
    pub(super) fn options(&self) -> PgConnectOptions {
        self.hosts[self.known.host.load(Ordering::Relaxed)].clone()
    }

    /// Returns true if a pooler in transaction mode is between.
    pub(super) fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// The settings of what writes, for one transaction: no session is ours behind a pooler.
    pub(super) fn settings_of_transaction(&self) -> String {
        let timeout = std::iter::once(("statement_timeout", self.timeout.as_str()));
        let settings = WRITING.into_iter().chain(timeout);
        settings.map(|(name, value)| format!("SET LOCAL {name} = '{value}'; ")).collect()
    }

    /// The begin of a transaction of one statement, behind a pooler. The statement may number commits, and a process that is
    /// stopped then must not keep their lock.
    pub(super) fn begin_reading(&self) -> String {
        let timeout = &self.timeout;
        format!(
            "BEGIN; SET LOCAL statement_timeout = '{timeout}'; SET LOCAL idle_in_transaction_session_timeout = '{timeout}'"
        )
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
        self.connect_as(if self.pooled { &[] } else { &WRITING }).await
    }

    /// Connects once, to read.
    pub(super) async fn connect_to_read(&self) -> Result<PgConnection, StoreError> {
        self.connect_as(&[]).await
    }

    /// Connects to the first host that takes writes, beginning with the one that did so last. When none does, returns a
    /// connection to one that only reads: its first write says why.
    async fn connect_as(&self, settings: &[(&str, &str)]) -> Result<PgConnection, StoreError> {
        let first = self.known.host.load(Ordering::Relaxed);
        let (mut read_only, mut failure) = (None, None);
        for after in 0..self.hosts.len() {
            let at = (first + after) % self.hosts.len();
            let mut options = self.hosts[at].clone();
            if !settings.is_empty() {
                options = options.options(settings.iter().copied());
            }
            match reach(&options).await {
                Ok(conn) if self.hosts.len() == 1 => return Ok(conn),
                Ok(mut conn) => match answer_within(CONNECT, fitness::is_read_only(&mut conn)).await {
                    Ok(false) => {
                        self.known.host.store(at, Ordering::Relaxed);
                        return Ok(conn);
                    }
                    Ok(true) => read_only = read_only.or(Some(conn)),
                    Err(error) => failure = Some(failed("be reached")(error)),
                },
                Err(error) => failure = Some(error),
            }
        }
        let none = || StoreError::Misconfigured("the database address names no host".to_owned());
        read_only.ok_or_else(|| failure.unwrap_or_else(none))
    }

    /// As [`Address::connect`] in a process that serves: a user, password or database that is refused then is refused for now,
    /// such as while a server is restored.
    pub(super) async fn connect_in_service(&self, writes: bool) -> Result<Live, StoreError> {
        let connected = if writes { self.connect().await } else { self.connect_to_read().await };
        connected.map(Live::new).map_err(|error| match error {
            StoreError::Unfit(message) => StoreError::Unavailable { action: "be reached", message },
            error => error,
        })
    }

    /// Returns the verdict about an error of a session that began at `born`, and remembers what it says about the other sessions
    /// of this process. The end of a session that is known as outdated says nothing about those that replaced it.
    pub(super) fn judge(&self, error: &sqlx::Error, born: Instant) -> SessionVerdict {
        let verdict = SessionVerdict::of(error);
        let mut doubts = self.known.doubts();
        match verdict {
            SessionVerdict::ReplaceAll if doubts.outdated.is_some_and(|outdated| born <= outdated) => {}
            SessionVerdict::ReplaceAll => doubts.outdated = Some(Instant::now()),
            SessionVerdict::Replace => doubts.broken = Some(Instant::now()),
            SessionVerdict::Retry | SessionVerdict::Refuse | SessionVerdict::Discard => {}
        }
        verdict
    }

    /// Returns the connection if it can be trusted. One that is outdated is closed. One that was silent for longer than
    /// `trusted`, or since another session broke, has to answer first.
    pub(super) async fn trusted(&self, mut live: Live, trusted: Duration) -> Option<Live> {
        let doubts = *self.known.doubts();
        if doubts.outdated.is_some_and(|outdated| live.born <= outdated) {
            return None;
        }
        if live.heard.elapsed() > trusted || doubts.broken.is_some_and(|broken| live.heard <= broken) {
            answer_within(PING, live.conn.ping()).await.ok()?;
            live.answered();
        }
        Some(live)
    }
}

/// Connects to one host.
async fn reach(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    let place = shown(options);
    match tokio::time::timeout(CONNECT, PgConnection::connect_with(options)).await {
        Ok(Ok(conn)) => Ok(conn),
        Ok(Err(error)) => Err(refused(&place, error)),
        Err(_) => {
            let message = format!("{place} did not answer within {CONNECT:?}");
            Err(StoreError::Unavailable { action: "be reached", message })
        }
    }
}

/// `host:port/database`, without anything secret.
fn shown(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or("(default)");
    format!("{}:{}/{database}", options.get_host(), options.get_port())
}

/// Returns one address per host of an address such as `postgres://user@a:5432,b:5432/database`.
fn each_host(url: &str) -> Vec<String> {
    let begin = url.find("://").map_or(0, |at| at + 3);
    let end = url[begin..].find(['/', '?', '#']).map_or(url.len(), |at| begin + at);
    let begin = url[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
    let (before, after) = (&url[..begin], &url[end..]);
    url[begin..end].split(',').map(|host| format!("{before}{host}{after}")).collect()
}

/// Waits for an answer, but not for longer than this.
pub(super) async fn answer_within<T>(
    longest: Duration,
    asking: impl Future<Output = Result<T, sqlx::Error>> + Send,
) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(longest, asking).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the database did not answer within {longest:?}"),
        ))),
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
        if SessionVerdict::of(&error).passes() {
            StoreError::Unavailable { action, message }
        } else {
            StoreError::Database { action, message }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_one_host_or_several() {
        for (url, hosts) in [
            ("postgres://ann@db:5432/t", &["postgres://ann@db:5432/t"][..]),
            ("postgres:///t?host=/run/postgresql", &["postgres:///t?host=/run/postgresql"]),
            (
                "postgresql://ann:a,b@c:1,[::1]:2,d/t?sslmode=require",
                &[
                    "postgresql://ann:a,b@c:1/t?sslmode=require",
                    "postgresql://ann:a,b@[::1]:2/t?sslmode=require",
                    "postgresql://ann:a,b@d/t?sslmode=require",
                ],
            ),
        ] {
            assert_eq!(each_host(url), hosts);
            let address = Address::of(&PostgresOptions::new(url)).ok();
            assert_eq!(address.map(|address| address.hosts.len()), Some(hosts.len()), "{url}");
        }
        assert!(Address::of(&PostgresOptions::new("postgres://a:port,b/t")).is_err());
    }
}
