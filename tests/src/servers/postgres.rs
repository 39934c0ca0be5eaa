//! A private PostgreSQL server.

use super::beside;
use super::database::{Database, Lending};
use super::port::Port;
use super::programs::{as_server_user, give_to_server_user, postgres_dir};
use super::supervised::{Recipe, Supervised, private_folder};
use super::template::{DATA, ROLE, succeeded, template};
use crate::wait;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::OnceCell;

/// Stops the server at once, like a crash of the machine: nothing is written out, and the next start recovers
/// from the log.
const IMMEDIATELY: &str = "QUIT";

/// A PostgreSQL server with data of its own. It is stopped and removed when it is dropped.
pub struct Postgres {
    server: Arc<Supervised>,
    port: Port,
    databases: AtomicU32,
    lending: Lending,
    shared: bool,
}

/// Settings of the shared server. It never crashes, so no data has to survive a loss of power.
const SHARED: &[(&str, &str)] =
    &[("max_connections", "300"), ("fsync", "off"), ("full_page_writes", "off"), ("autovacuum", "off")];

/// Settings of a server with standbys: a standby that was cut off finds the log that it missed.
pub const WITH_STANDBYS: &[(&str, &str)] = &[("wal_keep_size", "512MB"), ("max_wal_senders", "8")];

impl Postgres {
    /// Returns the server that the tests of this process share. It takes 300 connections and does not sync.
    /// It cannot be stopped or restarted.
    pub async fn shared() -> &'static Self {
        static SERVER: OnceCell<Postgres> = OnceCell::const_new();
        SERVER.get_or_init(|| Self::launch(SHARED, true)).await
    }

    /// Starts a server for one test, with PostgreSQL's default settings (`fsync` on), to be restarted and
    /// broken.
    pub async fn own() -> Self {
        Self::own_with(&[]).await
    }

    /// Starts a server for one test with these settings (`postgresql.conf`'s names and values).
    pub async fn own_with(settings: &[(&str, &str)]) -> Self {
        Self::launch(settings, false).await
    }

    /// Starts a server for one test that takes TLS connections, with `cert.pem` and `key.pem` of a folder.
    pub async fn own_over_tls(folder: &Path) -> Self {
        let files = ["cert.pem", "key.pem"].map(|name| {
            let file = folder.join(name);
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            give_to_server_user(&file);
            file.display().to_string()
        });
        give_to_server_user(folder);
        Self::own_with(&[("ssl", "on"), ("ssl_cert_file", &files[0]), ("ssl_key_file", &files[1])]).await
    }

    /// Copies the running server with `pg_basebackup`, and starts a server on the copy.
    pub async fn restored_from_backup(&self) -> Self {
        self.copied(&[], &[]).await
    }

    /// Starts a standby of this name: a copy of the running server that streams its log from the primary, which it
    /// reaches at `through`, such as a proxy. It answers reads. Start the primary with [`WITH_STANDBYS`].
    pub async fn standby(&self, name: &str, through: SocketAddr) -> Self {
        let (host, port) = (through.ip(), through.port());
        let primary = format!("host={host} port={port} user=postgres application_name={name}");
        let settings = [("primary_conninfo", primary.as_str()), ("wal_retrieve_retry_interval", "100ms")];
        let standby = self.copied(&["-R"], &[WITH_STANDBYS, &settings[..]].concat()).await;
        self.until_streams_to(name).await;
        standby
    }

    /// Waits until a standby of this name has replayed everything that was written before now.
    pub async fn until_streams_to(&self, name: &str) {
        let written = self.superuser().ask("postgres", "SELECT pg_current_wal_lsn()".to_owned()).await;
        let sql = format!(
            "SELECT count(*) FROM pg_stat_replication WHERE application_name = '{name}' AND state = 'streaming' \
             AND replay_lsn >= '{written}'"
        );
        wait::until(&format!("{name} streams"), async || {
            self.superuser().ask("postgres", sql.clone()).await != "0"
        })
        .await;
    }

    /// Changes a setting of the running server; returns when new sessions have it.
    pub async fn configure(&self, name: &str, value: &str) {
        let sql = format!("ALTER SYSTEM SET {name} = '{value}';\nSELECT pg_reload_conf()");
        self.superuser().ask("postgres", sql).await;
        wait::until(&format!("{name} is in force"), async || {
            self.superuser().ask("postgres", format!("SHOW {name}")).await == value
        })
        .await;
    }

    /// Makes a standby the primary of a new timeline; returns when it takes writes.
    pub async fn promote(&self) {
        let promoted = self.superuser().ask("postgres", "SELECT pg_promote(wait => true)".to_owned()).await;
        assert_eq!(promoted, "t", "the server is no standby, or is not promoted within a minute");
    }

    /// Copies the running server with `pg_basebackup`, and starts a server with these settings on the copy.
    async fn copied(&self, options: &[&'static str], settings: &[(&str, &str)]) -> Self {
        let (socket, port) = (self.server.folder().to_owned(), self.port.number().to_string());
        let options = options.to_vec();
        let backup = beside(move || {
            let folder = private_folder("backup");
            give_to_server_user(&folder);
            let mut backup = as_server_user(&postgres_dir().join("pg_basebackup"));
            backup.args(["-U", "postgres", "-c", "fast", "-X", "stream", "-p", &port, "-h"]).arg(socket);
            backup.args(options).arg("-D").arg(folder.join(DATA));
            succeeded("pg_basebackup", backup.current_dir("/").output());
            folder
        })
        .await;
        let copy = Self::launch_on(Some(backup.join(DATA)), settings, false).await;
        copy.databases.store(self.databases.load(Ordering::Relaxed), Ordering::Relaxed);
        std::fs::remove_dir_all(&backup).unwrap_or_else(|error| panic!("{}: {error}", backup.display()));
        copy
    }

    /// Copies a database, which may be of another server, with `pg_dump` into a new one of this server.
    pub async fn restored_from_dump(&self, of: &Database) -> Database {
        let copy = self.database().await;
        let (from, to) = (of.url.clone(), copy.url.clone());
        beside(move || {
            let file = tempfile::NamedTempFile::new().unwrap_or_else(|error| panic!("a file: {error}"));
            let program = |name: &str| Command::new(postgres_dir().join(name));
            let dumped = program("pg_dump").args(["-Fc", "-d", &from, "-f"]).arg(file.path()).output();
            succeeded("pg_dump", dumped);
            succeeded("pg_restore", program("pg_restore").args(["-d", &to]).arg(file.path()).output());
        })
        .await;
        copy
    }

    /// Returns the address of a database of this name.
    pub fn named(&self, name: &str) -> Database {
        Database::new(name.to_owned(), self.addr())
    }

    async fn launch(settings: &[(&str, &str)], shared: bool) -> Self {
        Self::launch_on(None, settings, shared).await
    }

    /// Starts a server on a copy of this data folder, or on fresh data.
    async fn launch_on(data: Option<PathBuf>, settings: &[(&str, &str)], shared: bool) -> Self {
        let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let server = beside(move || {
            let data = data.unwrap_or_else(template);
            let mut command: Vec<OsString> = vec![postgres_dir().join("postgres").into()];
            // Compiling a query of a test takes longer than the query.
            let own =
                ["listen_addresses=127.0.0.1", "unix_socket_directories=..", "jit=off"].map(str::to_owned);
            for setting in own.into_iter().chain(settings) {
                command.extend(["-c".into(), setting.into()]);
            }
            command.push("-D".into());
            let server = Supervised::prepare(Recipe {
                name: "PostgreSQL",
                command,
                place: |folder| folder.join(DATA).into(),
                last_signal: IMMEDIATELY,
                never_as_root: true,
            });
            server.copy(&data);
            server
        })
        .await;
        let port = server.start_on_a_port(|port| format!("-p {port}"), accepts).await;
        Self { server, port, databases: AtomicU32::new(0), lending: Lending::default(), shared }
    }

    /// Makes a new database without any table. It lasts as long as the server.
    pub async fn database(&self) -> Database {
        let name = self.new_name();
        self.superuser().ask("postgres", format!("CREATE DATABASE {name} OWNER {ROLE}")).await;
        Database::new(name, self.addr())
    }

    /// Lends a migrated and empty database, that of an ended test if there is one: emptying a database is
    /// much quicker than migrating one.
    pub async fn migrated(&'static self) -> Database {
        self.lending.lend(self).await
    }

    /// Moves a database that has no connections to another folder, such as one on a small disk.
    pub async fn move_to(&self, database: &Database, folder: &Path) {
        give_to_server_user(folder);
        let superuser = || self.superuser();
        let place = folder.display();
        superuser().ask("postgres", format!("CREATE TABLESPACE apart LOCATION '{place}'")).await;
        let sql = format!("ALTER DATABASE {} SET TABLESPACE apart", database.name);
        superuser().ask("postgres", sql).await;
    }

    pub(super) fn new_name(&self) -> String {
        format!("t{}", self.databases.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the server's address.
    pub fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    /// Returns the database's address. It stays the same over restarts.
    pub fn url(&self, database: &Database) -> String {
        database.url_at(self.addr())
    }

    /// Stops the server without any preparation and starts it again; returns when it answers.
    pub async fn restart_immediate(&self) {
        self.stop_immediate().await;
        self.start_again().await;
    }

    /// Stops the server without any preparation, as `pg_ctl -m immediate` does; returns when it is down.
    pub async fn stop_immediate(&self) {
        assert!(!self.shared, "other tests use the shared server: take Postgres::own() to stop one");
        self.server.end(IMMEDIATELY).await;
    }

    /// Starts the server after it was stopped; returns when it answers.
    pub async fn start_again(&self) {
        let port = self.port.number();
        let runs = self.server.start(format!("-p {port}"), move || accepts(port)).await;
        assert!(runs, "PostgreSQL does not start again:\n{}", self.server.log_tail());
    }

    /// Ends every connection to the database except those of [`Postgres::psql`]; returns their number.
    pub async fn terminate_connections(&self, database: &Database) -> usize {
        let sql = format!(
            "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = '{}' AND application_name <> '{OURS}'",
            database.name
        );
        let ended = self.superuser().ask("postgres", sql).await;
        ended.parse().unwrap_or_else(|_| panic!("psql printed {ended} and no number"))
    }

    /// Runs SQL as superuser, each statement on its own; returns the rows, one per line, with `|` between
    /// columns.
    ///
    /// # Panics
    /// When a statement fails.
    pub async fn psql(&self, database: &Database, sql: &str) -> String {
        self.superuser().ask(&database.name, sql.to_owned()).await
    }

    pub(super) fn superuser(&self) -> Superuser {
        Superuser { folder: self.server.folder().to_owned(), port: self.port.number() }
    }
}

fn accepts(port: u16) -> bool {
    let mut requested = Command::new(postgres_dir().join("pg_isready"));
    requested.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]).stderr(Stdio::null());
    requested.status().is_ok_and(|status| status.success())
}

/// The name under which `psql` connects here.
const OURS: &str = "turnstone-harness";

/// The connection as superuser, which a full server still accepts.
#[derive(Clone)]
pub(super) struct Superuser {
    folder: PathBuf,
    port: u16,
}

impl Superuser {
    fn psql(&self, database: &str, sql: &str) -> std::io::Result<std::process::Output> {
        let mut psql = Command::new(postgres_dir().join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database]);
        psql.arg("-h").arg(&self.folder).args(["-p", &self.port.to_string(), "-f", "-"]);
        psql.env("PGAPPNAME", OURS).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut psql = psql.spawn()?;
        let sent = psql.stdin.take().map(|mut sql_in| std::io::Write::write_all(&mut sql_in, sql.as_bytes()));
        let output = psql.wait_with_output()?;
        match sent {
            // A psql that cannot connect reads nothing; its own error explains more than the broken pipe.
            Some(Err(error)) if output.status.success() => Err(error),
            _ => Ok(output),
        }
    }

    /// Runs statements with psql, and returns what it prints.
    pub(super) async fn ask(self, database: &str, sql: String) -> String {
        let database = database.to_owned();
        beside(move || succeeded("psql", self.psql(&database, &sql))).await
    }

    /// Runs statements in one transaction, and returns the first column of their last row. It starts no
    /// program: the tests borrow more than a thousand databases.
    ///
    /// # Panics
    /// When a statement fails or nothing is returned.
    pub(super) async fn value(&self, database: &str, sql: &str) -> String {
        let options = PgConnectOptions::new_without_pgpass()
            .socket(&self.folder)
            .port(self.port)
            .username("postgres")
            .database(database)
            .application_name(OURS);
        let mut connection =
            PgConnection::connect_with(&options).await.unwrap_or_else(|error| panic!("{database}: {error}"));
        let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await;
        let rows = rows.unwrap_or_else(|error| panic!("{database}: {error}\n{sql}"));
        // A connection that is only dropped may outlive this call and block its database.
        connection.close().await.unwrap_or_else(|error| panic!("{database}: {error}"));
        rows.last().unwrap_or_else(|| panic!("no row from {sql}")).get_unchecked(0)
    }
}
