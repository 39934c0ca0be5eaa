//! Checks that a database is fit for use: it takes writes, it has this version's schema, it keeps what it confirms.

use super::PostgresOptions;
use super::connection::{Address, failed};
use super::replication;
use crate::cipher::{self, DataKey};
use crate::migrations::{self, Applied, POSTGRES};
use crate::{OpenTransaction, StoreError, sql};
use serde::Serialize;
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

/// The oldest PostgreSQL that is tested.
const OLDEST: i64 = 140_000;

/// Something that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The check, and its result.
    pub what: String,
    /// True when the check passed.
    pub ok: bool,
    /// The advice when it failed; empty when it passed.
    pub advice: String,
}

impl Finding {
    /// Something that is as it should be.
    #[must_use]
    pub fn good(what: impl Into<String>) -> Self {
        Self { what: what.into(), ok: true, advice: String::new() }
    }

    /// Something that is not as it should be.
    #[must_use]
    pub fn bad(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what: what.into(), ok: false, advice: advice.into() }
    }
}

struct Server {
    standby: bool,
    read_only: bool,
    version: i64,
    lossy: bool,
}

async fn server(conn: &mut PgConnection) -> Result<Server, StoreError> {
    // Raw, here and below: one message asks, because through a pooler in transaction mode two might part.
    let row = sqlx::raw_sql(sql::SELECT_FITNESS.postgres).fetch_one(conn).await;
    let row = row.map_err(failed("read the state of the database"))?;
    let flag = |column: &str| row.try_get::<i64, _>(column).map_err(failed("read the state of the database"));
    Ok(Server {
        standby: flag("standby")? != 0,
        read_only: flag("read_only")? != 0,
        version: flag("version")?,
        lossy: flag("lossy")? != 0,
    })
}

/// Returns true if the server is a standby or takes no writes.
pub(super) async fn is_read_only(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let row = sqlx::raw_sql(sql::SELECT_FITNESS.postgres).fetch_one(conn).await?;
    Ok(row.try_get::<i64, _>("standby")? != 0 || row.try_get::<i64, _>("read_only")? != 0)
}

/// Refuses a server that takes no writes.
pub(super) async fn takes_writes(conn: &mut PgConnection) -> Result<(), StoreError> {
    let server = server(conn).await?;
    if server.standby {
        return Err(StoreError::Unfit(
            "the database is a read-only standby: give DATABASE_URL the address of the primary; nothing was changed"
                .to_owned(),
        ));
    }
    if server.read_only {
        return Err(StoreError::Unfit(
            "the database takes no writes (default_transaction_read_only is on): switch it off for this database or \
             this user"
                .to_owned(),
        ));
    }
    if server.version < OLDEST {
        return Err(StoreError::Unfit(format!(
            "the database is PostgreSQL {}, which is too old: 14 is the oldest that Turnstone works with",
            server.version / 10_000
        )));
    }
    Ok(())
}

/// The migrations that were applied.
pub(super) async fn applied(conn: &mut PgConnection) -> Result<Vec<Applied>, StoreError> {
    let migration = |row: &PgRow| {
        Ok(Applied {
            version: row.try_get("version")?,
            checksum: row.try_get("checksum")?,
            oldest_compatible: row.try_get("oldest_compatible")?,
        })
    };
    match sqlx::raw_sql(sql::SELECT_APPLIED_MIGRATIONS.postgres).fetch_all(conn).await {
        // 42P01: there is no table of migrations yet.
        Err(error) if error.as_database_error().is_some_and(|e| e.code().as_deref() == Some("42P01")) => {
            Ok(Vec::new())
        }
        Err(error) => Err(failed("list its migrations")(error)),
        Ok(rows) => rows.iter().map(|row| migration(row).map_err(failed("list its migrations"))).collect(),
    }
}

/// Refuses a schema that is not this version's.
pub(super) async fn schema_fits(conn: &mut PgConnection) -> Result<(), StoreError> {
    let applied = applied(conn).await?;
    migrations::known(&applied, POSTGRES)?;
    let has = |version: i64| applied.iter().any(|migration| migration.version == version);
    let missing = POSTGRES.iter().filter(|(version, _, _)| !has(*version)).count();
    if missing > 0 {
        return Err(StoreError::Unfit(format!(
            "the database lacks {missing} of {} migrations: run `turnstone migrate` with the same address first",
            POSTGRES.len()
        )));
    }
    Ok(())
}

/// See [`super::PostgresStore::check`].
pub(super) async fn check(options: &PostgresOptions) -> Vec<Finding> {
    let advice = "give DATABASE_URL the address of a PostgreSQL primary that is reachable from here";
    let mut conn = match Address::of(options) {
        Ok(address) => match address.connect().await {
            Ok(conn) => conn,
            Err(error) => return vec![Finding::bad(error.to_string(), advice)],
        },
        Err(error) => return vec![Finding::bad(error.to_string(), advice)],
    };
    let mut findings = Vec::new();
    match server(&mut conn).await {
        Ok(server) => {
            findings.push(Finding::good(format!("PostgreSQL {} answers", server.version / 10_000)));
            if server.lossy {
                findings.push(Finding::bad(
                    "synchronous_commit is off: a crash of the database loses what it confirmed",
                    "switch it on for this database or this user",
                ));
            }
            if !server.standby {
                findings.push(replication::finding(&mut conn).await);
            }
        }
        Err(error) => return vec![Finding::bad(error.to_string(), advice)],
    }
    findings.push(match takes_writes(&mut conn).await {
        Ok(()) => room(&mut conn).await,
        Err(error) => Finding::bad(error.to_string(), "use the primary"),
    });
    match schema_fits(&mut conn).await {
        Ok(()) => {
            findings.push(Finding::good("the schema is this version's"));
            findings.push(encryption(&mut conn, options).await);
            findings.extend(open_transaction(&mut conn).await);
        }
        Err(error) => {
            let advice = "run `turnstone migrate`; if it refuses, use the newer binary or an empty database";
            findings.push(Finding::bad(error.to_string(), advice));
        }
    }
    findings
}

/// Checks that the database has room for more. A user who may not make temporary tables gets a good finding.
async fn room(conn: &mut PgConnection) -> Finding {
    let tried = sqlx::raw_sql(sql::INSERT_ROWS_FOR_ROOM.postgres).execute(&mut *conn).await;
    let Err(error) = tried else { return Finding::good("the database takes writes") };
    // Ends the transaction that failed.
    let _ = sqlx::raw_sql("ROLLBACK").execute(conn).await;
    match error.as_database_error().and_then(|error| error.code()) {
        Some(code) if code.starts_with("53") => Finding::bad(
            format!("the database takes no writes: {error}"),
            "make room on its disk; the workers keep the answers that they have, and continue by themselves",
        ),
        _ => Finding::good("the database takes writes"),
    }
}

/// Returns a finding for a transaction that is open for long. Without the right to see other transactions there is none.
async fn open_transaction(conn: &mut PgConnection) -> Option<Finding> {
    let row = sqlx::raw_sql(sql::SELECT_OLDEST_TRANSACTION.postgres).fetch_optional(conn).await.ok()??;
    let open = OpenTransaction {
        database: row.try_get("database").ok()?,
        pid: row.try_get("pid").ok()?,
        seconds: row.try_get("seconds").ok()?,
    };
    let advice = "end it, or find out which program holds it: vacuum removes no rows that are newer than it";
    Some(Finding::bad(open.to_string(), advice))
}

/// Checks that the keys of the configuration open what is stored.
async fn encryption(conn: &mut PgConnection, options: &PostgresOptions) -> Finding {
    let rows =
        sqlx::raw_sql(sql::SELECT_DATA_KEYS.postgres).fetch_all(conn).await.map_err(failed("read data keys"));
    let rows = rows.and_then(|rows| {
        rows.into_iter().map(|row| DataKey::decode(&row.into())).collect::<Result<Vec<_>, _>>()
    });
    match rows {
        Ok(rows) => cipher::finding(options.encryption.as_ref(), &rows),
        Err(error) => Finding::bad(error.to_string(), "give this user the right to read the table data_keys"),
    }
}
