//! Both folders of migrations make the same tables. Rows of the baseline work in the newest schema, and other schemas
//! are refused.

use super::backend::{Backend, Opened, Place};
use super::jobs::{LAPSED, LEASE, NOW, agent, complete, done, plain};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqlSafeStr};
use std::collections::BTreeSet;
use std::sync::Arc;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{JobState, Lease, Phase};
use turnstone_store::{Decision, Duty, JobKind, PostgresOptions, PostgresStore, SqliteStore};

/// Returns `table place column required` of every table. The width of a number differs between the databases and is
/// left out.
async fn columns(place: &Place) -> BTreeSet<String> {
    let sql = match place {
        Place::Sqlite(_) => {
            "SELECT t.name || ' ' || (c.cid + 1) || ' ' || c.name || CASE WHEN c.type = 'TEXT' THEN ' text' ELSE ' number' END \
             || CASE WHEN c.\"notnull\" = 1 OR c.pk > 0 THEN ' required' ELSE '' END \
             FROM sqlite_master AS t JOIN pragma_table_xinfo(t.name) AS c \
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name NOT LIKE '_sqlx_%'"
        }
        Place::Postgres(_) => {
            "SELECT c.table_name \
             || ' ' || row_number() OVER (PARTITION BY c.table_name ORDER BY c.ordinal_position) || ' ' || c.column_name \
             || CASE WHEN c.data_type = 'text' THEN ' text' ELSE ' number' END \
             || CASE WHEN c.is_nullable = 'NO' THEN ' required' ELSE '' END \
             FROM information_schema.columns AS c \
             JOIN pg_class AS t ON t.relname = c.table_name AND NOT t.relispartition AND t.relkind IN ('r', 'p') \
             WHERE c.table_schema = 'public' AND c.table_name NOT LIKE '\\_sqlx\\_%'"
        }
    };
    place.texts(sql).await.into_iter().collect()
}

/// Returns `index table` of every named index.
async fn indexes(place: &Place) -> BTreeSet<String> {
    let sql = match place {
        Place::Sqlite(_) => {
            "SELECT name || ' ' || tbl_name FROM sqlite_master WHERE type = 'index' AND sql NOT LIKE 'CREATE UNIQUE%'"
        }
        Place::Postgres(_) => {
            "SELECT i.relname || ' ' || t.relname FROM pg_index AS x \
             JOIN pg_class AS i ON i.oid = x.indexrelid JOIN pg_class AS t ON t.oid = x.indrelid \
             WHERE NOT x.indisunique AND t.relnamespace = 'public'::regnamespace AND NOT t.relispartition"
        }
    };
    place.texts(sql).await.into_iter().collect()
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn both_trees_make_the_same_tables() {
    let (sqlite, postgres) = (Place::empty(Backend::Sqlite).await, Place::empty(Backend::Postgres).await);
    drop((sqlite.migrate_and_open().await, postgres.migrate_and_open().await));
    let (here, there) = (columns(&sqlite).await, columns(&postgres).await);
    assert!(here.len() > 100, "{here:?}");
    let different: Vec<_> = here.symmetric_difference(&there).collect();
    assert!(different.is_empty(), "a column, or its place, is in only one of the databases: {different:#?}");
    let (here, there) = (indexes(&sqlite).await, indexes(&postgres).await);
    let different: Vec<_> = here.symmetric_difference(&there).collect();
    assert!(different.is_empty(), "an index is in only one of the databases: {different:#?}");
}

#[tokio::test]
async fn opening_twice_migrates_once() {
    for &backend in Backend::PLAIN {
        let place = Place::empty(backend).await;
        drop(place.migrate_and_open().await);
        let applied = "SELECT count(*) FROM _sqlx_migrations";
        let first = place.query(applied).await;
        drop(place.migrate_and_open().await);
        assert_eq!(place.query(applied).await, first);
    }
}

/// Returns statements that insert rows with the columns of the baseline: an agent job in each state, the active one
/// with a checkpoint. Later migrations have to keep them.
fn rows_of_the_baseline() -> String {
    let definition = serde_json::to_string(&agent(None).engagement.unwrap().agent).unwrap();
    let retry = serde_json::to_string(&plain(0).retry).unwrap();
    let mut sql = format!(
        "INSERT INTO agent_definitions (digest, definition) VALUES ('d', '{definition}'); \
         INSERT INTO queues (name) VALUES ('q');"
    );
    for (state, seq) in JobState::ALL.into_iter().zip(1..) {
        let (now, lapses) = (NOW.0, LAPSED.0);
        let ended = if state.is_terminal() { now.to_string() } else { "NULL".into() };
        let lease =
            if state == JobState::Active { format!("'w', 't', {lapses}") } else { "NULL, NULL, NULL".into() };
        let run_at = if state == JobState::Scheduled { lapses } else { now };
        sql.push_str(&format!(
            "INSERT INTO jobs (seq, id, job_type, kind, queue, state, priority, attempt, created_at, run_at, ended_at, \
             timeout_ms, engagement_seq, stream, position, worker_id, lease_token, lease_expires_at) \
             VALUES ({seq}, '{state}', 't', 'agent', 'q', '{state}', 0, 1, {now}, {run_at}, {ended}, 1000, {seq}, {seq}, \
             '{{\"turn\":1,\"tool_turns\":0,\"reasks\":0}}', {lease});\
             INSERT INTO job_envelopes (job_seq, retry, args, meta, options, extra) \
             VALUES ({seq}, '{retry}', '[1]', '{{}}', '{{}}', '{{}}');\
             INSERT INTO totals (seq, events, token_limit) VALUES ({seq}, 1, 100);\
             INSERT INTO engagements (seq, id, agent_name, digest, user_id, started_at, budget_seq) \
             VALUES ({seq}, 'e{seq}', 'a', 'd', 'u', {now}, {seq});\
             INSERT INTO journal (commit_id, stream, last_event, events, job_seq, names, turn, body, at) \
             VALUES ({seq}, {seq}, 1, 1, {seq}, 'job.enqueued', 0, '[{{\"event\":{{\"data\":{{}}}}}}]', {now});"
        ));
    }
    sql.push_str(
        "INSERT INTO journal (commit_id, stream, last_event, job_seq, turn, phase, phases, body, at) VALUES (4, 4, 1, 4, 1, 0, 1, \
         '[{\"phase\":{\"phase\":0,\"version\":1,\"body\":{},\"duration_ms\":0}}]', 0);",
    );
    sql.push_str(
        "INSERT INTO reviews (id, engagement_seq, job_seq, turn, call_id, kind, reviewer, question, arguments_hash, \
         state, created_at) VALUES ('r', 3, 3, 1, 'c', 'input', 'ann', '{}', 'h', 'open', 0);",
    );
    sql
}

/// Returns the baseline of a database.
fn baseline(place: &Place) -> &'static str {
    match place {
        Place::Sqlite(_) => include_str!("../../../migrations/sqlite/0001_baseline.sql"),
        Place::Postgres(_) => include_str!("../../../migrations/postgres/0001_baseline.sql"),
    }
}

/// Applies migrations to an empty database: the first text is number 1.
async fn apply(place: &Place, texts: &[&'static str]) {
    let migrations = (1..).zip(texts).map(|(number, text)| {
        Migration::new(number, "of a test".into(), MigrationType::Simple, (*text).into_sql_str(), false)
    });
    let migrator = Migrator::with_migrations(migrations.collect());
    match place {
        Place::Sqlite(dir) => {
            let options =
                SqliteConnectOptions::new().filename(dir.path().join("t.db")).create_if_missing(true);
            migrator.run(&mut options.connect().await.unwrap()).await.unwrap();
        }
        Place::Postgres(site) => {
            migrator.run(&mut PgConnection::connect(&site.url).await.unwrap()).await.unwrap();
        }
    }
}

/// Asserts that every way of opening the database refuses it with these words and leaves its tables unchanged.
async fn assert_refused(place: &Place, words: &[&str]) {
    let before = columns(place).await;
    let ids = || Arc::new(SystemIds);
    let refusals = match place {
        Place::Sqlite(dir) => vec![SqliteStore::open(&dir.path().join("t.db"), ids()).await.err()],
        Place::Postgres(site) => {
            let options = PostgresOptions::new(&site.url);
            vec![
                PostgresStore::migrate(&options, &[]).await.err(),
                PostgresStore::open(&options, ids()).await.err(),
            ]
        }
    };
    for refusal in refusals {
        let refusal = refusal.expect("a refusal").to_string();
        assert!(words.iter().all(|words| refusal.contains(words)), "{refusal}");
    }
    assert_eq!(columns(place).await, before);
}

const LATER: &str = "CREATE TABLE later (n BIGINT PRIMARY KEY)";

#[tokio::test]
async fn database_of_an_unreleased_version_is_refused() {
    for &backend in Backend::PLAIN {
        for texts in
            [&["CREATE TABLE queues (name TEXT PRIMARY KEY)"][..], &["CREATE TABLE jobs (n BIGINT)", LATER]]
        {
            let place = Place::empty(backend).await;
            apply(&place, texts).await;
            assert_refused(&place, &["an unreleased version", "empty database", "engagement export"]).await;
        }
    }
}

#[tokio::test]
async fn database_of_a_newer_version_is_refused() {
    for &backend in Backend::PLAIN {
        let place = Place::empty(backend).await;
        apply(&place, &[baseline(&place)]).await;
        place
            .query(
                "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'later', true, '', 0)",
            )
            .await;
        assert_refused(&place, &["a newer Turnstone made it"]).await;
    }
}

#[tokio::test]
async fn database_of_a_newer_version_is_used_if_its_migrations_are_additive() {
    for &backend in Backend::PLAIN {
        let place = Place::empty(backend).await;
        drop(place.migrate_and_open().await);
        let newer = |oldest: i64| {
            format!(
                "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time, oldest_compatible) \
                 VALUES (9000 + {oldest}, 'later', true, '', 0, {oldest})"
            )
        };
        place.query(&newer(1)).await;
        place.query("ALTER TABLE jobs ADD COLUMN later BIGINT").await;
        let at = Opened { store: place.migrate_and_open().await, place };
        let job = at.push(plain(0)).await;
        assert_eq!(at.job(&job).await.state, JobState::Available);
        at.place.query(&newer(2)).await;
        assert_refused(&at.place, &["a newer Turnstone made it", "needs a program with migration 2"]).await;
    }
}

#[tokio::test]
async fn rows_of_the_baseline_work_with_the_newest_schema() {
    for &backend in Backend::PLAIN {
        let place = Place::empty(backend).await;
        apply(&place, &[baseline(&place)]).await;
        place.query(&rows_of_the_baseline()).await;
        if backend == Backend::Postgres {
            place.query("SELECT setval('jobs_seq', 8)").await;
        }
        let at = Opened { store: place.migrate_and_open().await, place };
        for state in JobState::ALL {
            let job = at.job(&state.as_str().into()).await;
            assert_eq!((job.state, job.attempt), (state, 1));
        }
        assert_eq!(at.perform(Duty::TimeOutJobs, LAPSED).await, 0, "the start of that attempt is unknown");
        let held = Lease { job: "active".into(), token: "t".into(), expires_at: LAPSED };
        at.store.ledger.checkpoint(&held, done(Phase::Norm), NOW, LEASE).await.unwrap();
        assert_eq!(at.perform(Duty::ReapExpired, LAPSED).await, 1);
        let yes = Decision {
            approve: true,
            by: "ann".into(),
            principal: None,
            reported: None,
            reason: None,
            at: NOW,
        };
        at.store.intake.decide_review(&"r".into(), yes).await.unwrap();
        assert_eq!(at.perform(Duty::PromoteDue, LAPSED).await, 2);
        let new = at.push(agent(None)).await;
        let claims = at.claim_at(JobKind::Agent, 10, LAPSED).await;
        let claimed: Vec<&str> = claims.iter().map(|claim| claim.job.as_str()).collect();
        assert_eq!(claimed, ["scheduled", "available", "pending", "active", "retryable", new.as_str()]);
        let resumed = claims[3].engagement.as_ref().unwrap();
        assert_eq!(
            resumed.checkpoints.iter().map(|c| c.phase).collect::<Vec<_>>(),
            [Phase::Init, Phase::Norm]
        );
        for claim in &claims {
            at.settle(&claim.lease, complete()).await;
        }
        let term = at.term().await;
        let later = LAPSED.plus_ms(1_000_000);
        let until = Duty::FoldStatistics { until: later };
        while at.store.upkeep.perform(until, &term, later, 1).await.unwrap() > 0 {}
        assert_eq!(at.perform(Duty::Prune { before: later }, later).await, 9);
        assert_eq!(at.query("SELECT count(*) FROM engagements").await, 0);
    }
}
