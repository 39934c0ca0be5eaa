//! Golden plans: with a million waiting jobs, frequent statements use the index that was made for them.

use super::{few, opened};
use crate::conformance::jobs::{LEASE, NOW, agent, plain};
use serde_json::Value;
use std::collections::BTreeSet;
use turnstone_domain::NewJob;
use turnstone_store::{ClaimRequest, JobKind, Store};
use turnstone_tests::servers::{Database, Postgres};
use turnstone_tests::{Place, wait};

#[path = "../../../shared/store/build/expand.rs"]
mod expand;
#[path = "../../../shared/store/build/files.rs"]
mod files;

/// The parts that statements name.
const PARTS: &str = include_str!("../../../shared/store/sql/parts.txt");

/// A statement of the store, and the indexes that it uses.
struct Golden {
    name: &'static str,
    text: &'static str,
    types: &'static str,
    values: &'static str,
    /// The planner may choose among these by the expected number of rows.
    indexes: &'static [&'static str],
    /// True when the statement may sort: rows that the caller named, due jobs, or the queues.
    sorts: bool,
}

macro_rules! golden {
    ($name:literal of $file:literal, $types:literal, $values:literal, $indexes:expr, $sorts:literal) => {
        Golden { name: $name, ..golden!($file, $types, $values, $indexes, $sorts) }
    };
    ($name:literal, $types:expr, $values:literal, $indexes:expr, $sorts:literal) => {
        Golden {
            name: $name,
            text: include_str!(concat!("../../../shared/store/sql/", $name, ".sql")),
            types: $types,
            values: $values,
            indexes: &$indexes,
            sorts: $sorts,
        }
    };
}

const GOLDEN: &[Golden] = &[
    golden!(
        "postgres/lock_available_jobs",
        "(text, text, bigint, bigint, text, text, text)",
        "('plain', 'q3', 100, 5, NULL, NULL, '[\"busy\"]')",
        ["jobs_available"],
        false
    ),
    golden!(
        "postgres/lock_due_jobs_of_queue",
        "(text, text, bigint, bigint, text, text)",
        "('plain', 'q3', 100, 5, NULL, NULL)",
        ["jobs_waiting", "jobs_waiting_in"],
        true
    ),
    golden!("lock_due_jobs" of "common/lock_jobs", "(bigint, bigint)", "(5, 500)", ["jobs_waiting"], false),
    golden!(
        "lock_lapsed_jobs" of "common/lock_jobs",
        "(bigint, bigint, bigint, bigint, bigint, bigint)",
        "(5, 500, 0, 0, 0, 0)",
        ["jobs_active"],
        false
    ),
    golden!(
        "lock_timed_out_jobs" of "common/lock_jobs",
        "(bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint)",
        "(5, 500, 0, 0, 0, 0, 0, 5, 0)",
        ["jobs_timed"],
        false
    ),
    golden!(
        "common/update_bounded_leases",
        "(bigint, bigint, bigint)",
        "(5, 10, 500)",
        ["jobs_active", "jobs_pkey"],
        false
    ),
    golden!("lock_expiring_jobs" of "common/lock_jobs", "(bigint, bigint)", "(5, 500)", ["jobs_expiring"], false),
    golden!("common/lock_old_jobs", "(bigint, bigint)", "(5, 500)", ["jobs_ended", "jobs_engagement"], false),
    golden!("lock_jobs_by_lease" of "common/lock_jobs", "(text[], text[])", "('{a,b}', '{c,d}')", ["jobs_id_key"], true),
    golden!("lock_jobs" of "common/lock_jobs", "(text[])", "('{a,b}')", ["jobs_id_key"], true),
    golden!("select_job_by_id" of "common/select_jobs", "(text, text)", "('a', NULL)", ["jobs_id_key"], false),
    golden!("lock_job" of "common/lock_jobs", "(text, text)", "('a', 'acme')", ["jobs_id_key"], false),
    golden!(
        "postgres/select_before_push",
        "(text[], text[], bigint)",
        "('{a,b}', '{q3,q4}', 1)",
        ["jobs_id_key"],
        false
    ),
    golden!("common/select_active_of_rate_keys", "(text[])", "('{a,b}')", ["jobs_started"], false),
    golden!(
        "common/update_next_limited_jobs",
        "(text, text, text, bigint, text)",
        "('plain', 'q3', 'a', 5, NULL)",
        ["jobs_limited", "jobs_pkey"],
        false
    ),
    golden!("common/select_held_leases", "(text[], text[])", "('{a,b}', '{c,d}')", ["jobs_id_key"], false),
    golden!(
        "common/update_leases",
        "(text[], text[], bigint)",
        "('{a,b}', '{c,d}', 5)",
        ["jobs_id_key"],
        false
    ),
    golden!(
        "common/update_active_jobs",
        "(bigint[], bigint[], text[], bigint[], bigint[], bigint[], bigint[], text[], bigint[])",
        "('{1}', '{1}', '{a}', '{1}', '{1}', '{1}', '{1}', '{b}', '{0}')",
        ["jobs_pkey"],
        false
    ),
    golden!(
        "common/select_ready_queues",
        "(text, bigint)",
        "('plain', 5)",
        [
            "jobs_active",
            "jobs_available",
            "jobs_limited",
            "jobs_running",
            "jobs_started",
            "jobs_waiting",
            "jobs_waiting_in"
        ],
        true
    ),
    golden!(
        "postgres_alone/update_claimed_jobs",
        CLAIM_TYPES,
        "('plain', '[\"q3\"]', 100, 5, NULL, '[\"busy\"]', 'w', 1000, 'token', '{\"q3\": [1, 5]}', 7, 'writer', 'commit')",
        ["jobs_available", "jobs_pkey", "jobs_waiting", "jobs_waiting_in"],
        true
    ),
    golden!(
        "common/select_next_due",
        "",
        "",
        ["jobs_active", "jobs_expiring", "jobs_timed", "jobs_waiting"],
        false
    ),
];

/// The types of the parameters of a claim in one statement.
const CLAIM_TYPES: &str =
    "(text, text, bigint, bigint, text, text, text, bigint, text, text, bigint, text, text)";

/// Inserts so many available jobs, and some in every other state, like in a running fleet.
fn backlog(waiting: u32) -> String {
    let (ended, active) = (waiting + 20_000, waiting + 21_000);
    format!(
        "
    INSERT INTO queues (name) SELECT 'q' || n FROM generate_series(0, 7) AS n;
    INSERT INTO jobs (seq, id, job_type, kind, queue, state, priority, created_at, run_at, stream, engagement_seq)
    SELECT n, 'job-' || n, 't', CASE WHEN n % 3 = 0 THEN 'agent' ELSE 'plain' END, 'q' || n % 8, 'available', n % 5,
           n, n, n, CASE WHEN n % 3 = 0 THEN n END
    FROM generate_series(1, {waiting}) AS n;
    INSERT INTO jobs (seq, id, job_type, kind, queue, state, priority, created_at, run_at, stream, expires_at, ended_at)
    SELECT n, 'job-' || n, 't', 'plain', 'q' || n % 8, CASE WHEN n % 2 = 0 THEN 'completed' ELSE 'scheduled' END, 0,
           n, 2000000000, n, CASE WHEN n % 100 = 1 THEN 2000000000 END, CASE WHEN n % 2 = 0 THEN n END
    FROM generate_series({waiting} + 1, {ended}) AS n;
    INSERT INTO jobs (seq, id, job_type, kind, queue, state, priority, created_at, run_at, stream, lease_token,
                      lease_expires_at, claimed_at, timeout_ms)
    SELECT n, 'job-' || n, 't', 'plain', 'q' || n % 8, 'active', 0, n, n, n, 'token-' || n, 2000000000, n,
           CASE WHEN n % 10 = 0 THEN 2000000000 END
    FROM generate_series({ended} + 1, {active}) AS n;
    SELECT setval('jobs_seq', {active});
    ANALYZE;"
    )
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_backlog_changes_no_plan_and_no_order() {
    with_a_backlog_of(300_000).await;
}

#[ignore = "long: a million rows"]
#[tokio::test]
async fn a_million_waiting_jobs_change_no_plan_and_no_order() {
    with_a_backlog_of(1_000_000).await;
}

async fn with_a_backlog_of(waiting: u32) {
    let quick = [("fsync", "off"), ("synchronous_commit", "off"), ("full_page_writes", "off")];
    let postgres = Postgres::own_with(&quick).await;
    let database = postgres.database().await;
    Place::from(&database).migrate().await;
    postgres.psql(&database, &backlog(waiting)).await;
    let mut problems = Vec::new();
    for golden in GOLDEN {
        for mode in ["force_generic_plan", "force_custom_plan"] {
            problems.extend(golden.problem(&postgres, &database, mode).await);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let store = opened(&few(&database.url)).await;
    wait::output("the claims of the first jobs", the_right_jobs_are_claimed(&postgres, &database, &store))
        .await;
}

/// A claim that looks from a place, as it does for a while after a slow one, takes the jobs behind it in their order.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_claim_looks_from_its_place() {
    let database = Postgres::shared().await.database().await;
    Place::from(&database).migrate().await;
    let postgres = Postgres::shared().await;
    postgres.psql(&database, &backlog(1_000)).await;
    postgres.psql(&database, "INSERT INTO writers (name, last_commit) VALUES ('writer', 'none')").await;
    let claim = GOLDEN.iter().find(|golden| golden.name == "postgres_alone/update_claimed_jobs").unwrap();
    let (text, place) = (claim.text(), (3, 500));
    let rows = postgres
        .psql(
            &database,
            &format!(
                "PREPARE p {CLAIM_TYPES} AS {text}; EXECUTE p('plain', '[\"q3\"]', 60, 5, NULL, NULL, 'w', 1000, \
                 'token', '{{\"q3\": [{}, {}]}}', 7, 'writer', 'commit')",
                place.0, place.1
            ),
        )
        .await;
    let taken: Vec<i64> = rows.lines().map(|row| row.split('|').nth(1).unwrap().parse().unwrap()).collect();
    let waiting = (1..=1_000).filter(|n| n % 8 == 3 && n % 3 != 0);
    let is_behind = |n: &i64| n % 5 != place.0 || *n > place.1;
    let mut expected: Vec<i64> = waiting.filter(is_behind).collect();
    expected.sort_by_key(|n| (-(n % 5), *n));
    expected.truncate(60);
    assert!(expected.iter().any(|n| n % 5 == place.0 - 1), "the claim reaches all three ranges");
    assert_eq!(taken, expected);
}

impl Golden {
    /// The text of the statement for PostgreSQL.
    fn text(&self) -> String {
        let parts = files::parts_of_statements(PARTS).unwrap();
        let sections = files::sections(self.name, self.text).unwrap();
        let found = sections.into_iter().find(|(section, _)| section == self.name);
        let found = found.unwrap_or_else(|| panic!("there is no {}", self.name));
        let text = files::filled(found.1, &parts);
        match self.name.starts_with("postgres") {
            true => text,
            false => expand::expand(&text, expand::Dialect::Postgres).unwrap(),
        }
    }

    async fn problem(&self, postgres: &Postgres, database: &Database, mode: &str) -> Option<String> {
        let Self { name, types, values, .. } = self;
        let text = self.text();
        let sql = format!(
            "SET plan_cache_mode = {mode}; PREPARE p {types} AS {text}; EXPLAIN (FORMAT JSON) EXECUTE p {values};"
        );
        let answer = postgres.psql(database, &sql).await;
        let plan: Value = serde_json::from_str(&answer).unwrap();
        let mut found = Found::default();
        found.walk(&plan[0]["Plan"]);
        let expected: BTreeSet<&str> = self.indexes.iter().copied().collect();
        let fits =
            found.indexes.is_subset(&expected) && found.others.is_empty() && (self.sorts || !found.sorts);
        (!fits).then(|| format!("{name} ({mode}) should use {expected:?} only, and has {found:?}: {plan:#}"))
    }
}

/// The use of the jobs table in a plan.
#[derive(Default, Debug)]
struct Found<'a> {
    indexes: BTreeSet<&'a str>,
    /// Accesses to the table other than through one index.
    others: Vec<&'a str>,
    sorts: bool,
}

impl<'a> Found<'a> {
    fn walk(&mut self, node: &'a Value) {
        let kind = node["Node Type"].as_str().unwrap();
        self.sorts |= kind.contains("Sort");
        if node["Relation Name"] == "jobs" {
            match kind {
                // The primary key is for single rows: a range of it would be most of the table.
                "Index Scan" if node["Index Name"] == "jobs_pkey" && !is_of_one(node) => {
                    self.others.push("a range of jobs_pkey");
                }
                "Index Scan" | "Index Only Scan" => {
                    self.indexes.insert(node["Index Name"].as_str().unwrap());
                }
                "ModifyTable" => {}
                other => self.others.push(other),
            }
        }
        for below in node["Plans"].as_array().into_iter().flatten() {
            self.walk(below);
        }
    }
}

fn is_of_one(scan: &Value) -> bool {
    scan["Index Cond"].as_str().is_some_and(|condition| condition.starts_with("(seq = "))
}

async fn the_right_jobs_are_claimed(postgres: &Postgres, database: &Database, store: &Store) {
    let urgent = NewJob { queue: "q3".into(), ..plain(50) };
    let with_agent = NewJob { queue: "q3".into(), priority: 50, ..agent(None) };
    let pushed = store.intake.push(vec![urgent, with_agent]).await.unwrap();
    // The first of the backlog get envelopes, the only other rows that a claim needs.
    postgres
        .psql(
            database,
            "INSERT INTO job_envelopes (job_seq, retry, args, meta, options, extra)
             SELECT j.seq, v.retry, v.args, v.meta, v.options, v.extra
             FROM (SELECT seq FROM jobs WHERE state = 'available' AND kind = 'plain' AND queue = 'q3' AND priority = 4
                   ORDER BY seq LIMIT 20) AS j, (SELECT * FROM job_envelopes LIMIT 1) AS v",
        )
        .await;
    let mut claimed = Vec::new();
    for _ in 0..3 {
        let request = ClaimRequest {
            kind: JobKind::Plain,
            queues: vec!["q3".into()],
            limit: 5,
            worker_id: "w".into(),
            lease_ms: LEASE,
            tenant: None,
            runtime_tags: None,
            now: NOW,
        };
        claimed.extend(store.ledger.claim(request).await.unwrap().into_iter().map(|claim| claim.job.0));
    }
    let backlog = (1..).filter(|n| n % 8 == 3 && n % 5 == 4 && n % 3 != 0).map(|n| format!("job-{n}"));
    let expected: Vec<String> = [pushed[0].id.0.clone()].into_iter().chain(backlog).take(15).collect();
    assert_eq!(claimed, expected);
}
