//! Keeps [`super::places`] whole: whoever adds a column of text says whether it is sealed, and whoever adds a statement
//! that touches a sealed one has to name it there.

use super::key::MARK;
use super::places::{FOUND, KeyPart, WRITTEN};
use crate::sql;
use crate::sqlite::migrated_in_memory;
use std::collections::{BTreeMap, BTreeSet};

/// Columns of text that stay in the clear: what SQL compares, counts or orders by, what operators name and filter by, and
/// what says nothing about the content. `*` is the whole table.
const CLEAR: &[(&str, &str)] = &[
    ("_sqlx_migrations", "*"),
    ("agent_definitions", "digest"),
    ("agents", "name digest source_digest"),
    ("artifact_contents", "tenant digest"),
    ("artifacts", "id call_id tenant digest media_type"),
    ("branches", "*"),
    ("budget_rules", "*"),
    ("budget_waits", "*"),
    ("breaker_waits", "*"),
    ("breakers", "*"),
    ("credentials", "kind subject tool header prefix form"),
    ("cron_runs", "id tenant name outcome job_id"),
    ("crons", "tenant name expression timezone overlap_policy missed_policy description last_job_id"),
    ("data_keys", "*"),
    ("delegations", "*"),
    ("deliveries", "id webhook_id event_id event state error"),
    ("engagements", "id agent_name digest user_id user_email limited_by"),
    ("elsewhere", "*"),
    ("event_marks", "*"),
    ("forks", "parent_id"),
    ("guardrail_checks", "id side tool"),
    ("idempotency_keys", "name request pushed"),
    ("inheritances", "*"),
    ("input_definitions", "*"),
    ("job_envelopes", "retry"),
    ("job_schemas", "*"),
    ("jobs", "*"),
    ("journal", "names model"),
    ("leaders", "*"),
    ("memories", "*"),
    ("pools", "*"),
    ("queues", "*"),
    ("rate_keys", "*"),
    ("rate_limits", "*"),
    ("reservations", "*"),
    ("reviews", "id call_id kind reviewer arguments_hash state decided_by plan members asked late"),
    ("run_settings", "agent_name tenant run"),
    ("runs", "marks"),
    ("server_keys", "name"),
    ("state_keys", "scope name"),
    ("state_scopes", "*"),
    ("statistics", "*"),
    ("stubs", "*"),
    ("tenant_limits", "*"),
    ("tool_calls", "call_id name state provider tried answered_by"),
    ("tool_retries", "*"),
    ("totals", "*"),
    ("webhooks", "id tenant events filter"),
    ("workers", "*"),
    ("workflow_steps", "name role needs next state job_id job_type"),
    ("workflows", "*"),
    ("writers", "*"),
];
/// Statements that touch a sealed column and need not know what is in it.
const BLIND: [&str; 4] = [
    "UPDATE_RETIRED_MESSAGES",
    "SELECT_QUEUE_BYTES",
    "UPDATE_REPEATED_TOOL_CALL",
    "SELECT_WORKFLOW_STEPS_BY_KEY",
];

/// The sealed columns of each table.
fn sealed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut sealed: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for written in WRITTEN {
        sealed.entry(written.table).or_default().extend(written.columns.iter().map(|(_, column)| *column));
    }
    sealed
}

#[test]
fn every_column_of_text_is_sealed_or_said_to_be_clear() {
    let conn = migrated_in_memory();
    let columns = "SELECT m.name, c.name, c.type FROM sqlite_master AS m, pragma_table_info(m.name) AS c \
                   WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
    let (sealed, mut known) = (sealed(), BTreeSet::new());
    let mut statement = conn.prepare(columns).unwrap();
    let mut rows = statement.query(()).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let (table, column, kind) = <(String, String, String)>::try_from(row).unwrap();
        known.insert((table.clone(), column.clone()));
        if kind != "TEXT" {
            continue;
        }
        let mut clear = CLEAR.iter().filter(|(name, _)| *name == table);
        let is_clear = clear.any(|(_, list)| *list == "*" || list.split(' ').any(|name| name == column));
        let is_sealed = sealed.get(table.as_str()).is_some_and(|columns| columns.contains(column.as_str()));
        assert!(
            is_clear != is_sealed,
            "{table}.{column} is {}: seal it in cipher/places.rs, or add it to CLEAR here",
            if is_clear { "both clear and sealed" } else { "neither clear nor sealed" }
        );
    }
    for (table, columns) in sealed {
        for column in columns {
            assert!(known.contains(&(table.to_owned(), column.to_owned())), "there is no {table}.{column}");
        }
    }
}

/// The words of a statement, without the comments of its file.
fn words(text: &str) -> BTreeSet<&str> {
    text.lines()
        .filter(|line| !line.starts_with("--"))
        .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .collect()
}

#[test]
fn every_statement_that_touches_a_sealed_column_is_known() {
    let known: BTreeSet<&str> = WRITTEN
        .iter()
        .map(|written| written.text)
        .chain(FOUND.iter().map(|found| found.text))
        .flat_map(|text| [text.sqlite, text.postgres])
        .collect();
    let sealed = sealed();
    let mut seen = 0;
    // Statements of PostgreSQL alone are not used where columns are sealed.
    let all = sql::ALL.iter().flat_map(|(name, texts)| texts.iter().map(move |text| (*name, text)));
    for (name, text) in all.filter(|(_, text)| !text.sqlite.is_empty()) {
        for text in [text.sqlite, text.postgres] {
            let words = words(text);
            let touches = sealed.iter().find(|(table, columns)| {
                words.contains(*table) && columns.iter().any(|column| words.contains(column))
            });
            let Some((table, _)) = touches else { continue };
            seen += 1;
            assert!(
                known.contains(text) || BLIND.contains(&name),
                "{name} touches sealed columns of {table}: add it to cipher/places.rs"
            );
        }
    }
    assert!(seen >= WRITTEN.len() + FOUND.len() - 1, "only {seen} statements were looked at");
}

#[test]
fn what_is_said_of_a_statement_stands_in_it() {
    for written in WRITTEN {
        for (at, column) in written.columns {
            for text in [written.text.sqlite, written.text.postgres] {
                let words = words(text);
                assert!(words.contains(written.table) && words.contains(column), "{at} {column}: {text}");
            }
        }
    }
    let sealed = sealed();
    for found in FOUND {
        for text in [found.text.sqlite, found.text.postgres] {
            let words = words(text);
            let keys = found.key.iter().map(|part| match part {
                KeyPart::Int(column) | KeyPart::Text(column) => column,
            });
            let columns = found.columns.iter().chain(keys);
            assert!(words.contains(found.table), "{}: {text}", found.table);
            columns.for_each(|column| assert!(words.contains(column), "{column}: {text}"));
        }
        assert!(found.columns.iter().all(|column| sealed[found.table].contains(column)), "{}", found.table);
    }
    assert!(
        sql::SELECT_DIRECTIVES_BY_JOB.sqlite.contains(MARK)
            && sql::SELECT_DIRECTIVES_BY_JOB.postgres.contains(MARK)
    );
}
