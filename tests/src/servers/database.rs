//! Databases of a private PostgreSQL server, and those that one test after another borrows.

use super::postgres::{Postgres, Superuser};
use super::template::ROLE;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use tokio::sync::OnceCell;
use turnstone_store::{PostgresOptions, PostgresStore};

/// A database for one test. A borrowed one is available again when this is dropped.
pub struct Database {
    /// `postgres://turnstone@127.0.0.1:…/…`; the role owns the database and is no superuser.
    pub url: String,
    /// Its name.
    pub name: String,
    lent_by: Option<&'static Lending>,
}

impl Database {
    pub(super) fn new(name: String, server: SocketAddr) -> Self {
        Self { url: url_of(server, &name), name, lent_by: None }
    }

    /// Returns the database's address through an intermediary, such as a proxy.
    pub fn url_at(&self, addr: SocketAddr) -> String {
        url_of(addr, &self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(lending) = self.lent_by {
            lending.spare.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.name));
        }
    }
}

fn url_of(addr: SocketAddr, database: &str) -> String {
    format!("postgres://{ROLE}@{addr}/{database}")
}

/// The database from which every lent one is copied. Its schema `pristine` keeps the rows that the migrations
/// insert.
const MIGRATED: &str = "migrated";

/// Copies the rows that the migrations inserted, so that [`EMPTY`] can restore them.
const KEEP_ROWS: &str = "
CREATE SCHEMA pristine;
DO $$
DECLARE name text; filled boolean;
BEGIN
    FOR name IN SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition
        AND relnamespace = 'public'::regnamespace AND relname <> '_sqlx_migrations'
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM public.%I)', name) INTO filled;
        IF filled THEN EXECUTE format('CREATE TABLE pristine.%I AS TABLE public.%I', name, name); END IF;
    END LOOP;
END $$;";

/// Ends every other connection, and removes all rows except those that the migrations inserted.
const EMPTY: &str = "
SET client_min_messages = warning;
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition
        AND relnamespace = 'public'::regnamespace AND relname <> '_sqlx_migrations'
    LOOP
        EXECUTE format('DELETE FROM public.%I', name);
    END LOOP;
    FOR name IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'pristine'::regnamespace
    LOOP
        EXECUTE format('INSERT INTO public.%I SELECT * FROM pristine.%I', name, name);
    END LOOP;
    FOR name IN SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace
    LOOP
        EXECUTE format('ALTER SEQUENCE public.%I RESTART', name);
    END LOOP;
END $$;";

/// A digest of the schema and the settings. After a test that changed either, the database is not lent again.
const SCHEMA: &str = "
SELECT md5(string_agg(entry, ' ' ORDER BY entry)) FROM (
    SELECT concat_ws('.', relname, attname, atttypid, attnotnull, atthasdef, relkind, reloptions) AS entry
        FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
        WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT concat_ws('.', conname, contype, convalidated) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws('.', tgname, tgenabled) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT concat_ws('.', proname, md5(prosrc)) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws('.', version, md5(checksum)) FROM _sqlx_migrations
    UNION ALL SELECT setconfig::text FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
        WHERE datname = current_database()
) AS entries;";

/// Migrated databases that no test uses at the moment.
#[derive(Default)]
pub(super) struct Lending {
    /// The digest of the first one's schema.
    schema: OnceCell<String>,
    spare: Mutex<Vec<String>>,
}

impl Lending {
    pub(super) async fn lend(&'static self, postgres: &Postgres) -> Database {
        let schema = self.schema.get_or_init(|| migrate(postgres)).await;
        let superuser = || postgres.superuser();
        while let Some(name) = self.returned() {
            if superuser().value(&name, &format!("{EMPTY}{SCHEMA}")).await == *schema {
                return self.lent(name, postgres);
            }
        }
        let name = postgres.new_name();
        superuser().ask("postgres", format!("CREATE DATABASE {name} TEMPLATE {MIGRATED} OWNER {ROLE}")).await;
        self.lent(name, postgres)
    }

    fn returned(&self) -> Option<String> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn lent(&'static self, name: String, postgres: &Postgres) -> Database {
        let mut database = Database::new(name, postgres.addr());
        database.lent_by = Some(self);
        database
    }
}

/// Makes [`MIGRATED`] and returns the digest of its schema.
async fn migrate(postgres: &Postgres) -> String {
    let superuser = || -> Superuser { postgres.superuser() };
    superuser().ask("postgres", format!("CREATE DATABASE {MIGRATED} OWNER {ROLE}")).await;
    let options =
        PostgresOptions { connections: 1, ..PostgresOptions::new(url_of(postgres.addr(), MIGRATED)) };
    PostgresStore::migrate(&options, &[]).await.expect("the migrations");
    superuser().value(MIGRATED, &format!("{KEEP_ROWS}{SCHEMA}")).await
}
