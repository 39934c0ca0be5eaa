//! Checks that nothing sealed is stored in the clear. Each column of text is declared sealed in `engine/rows`, or
//! named here as clear. Each statement that touches a sealed column names the columns that it receives, and the key
//! of the row.

use super::key::MARK;
use super::sealing::{SEALED, of_statement, words, written};
use crate::sql::{self, Text};
use crate::sqlite::migrated_in_memory;
use std::collections::BTreeSet;

/// Columns of text that stay in the clear: what SQL compares, counts or orders by, what operators name and filter by, and
/// what says nothing about the content. `*` is the whole table.
const CLEAR: &[(&str, &str)] = &[
    ("_sqlx_migrations", "*"),
    ("agent_definitions", "digest"),
    ("agents", "name digest source_digest tenants"),
    ("api_keys", "*"),
    ("audit_entries", "*"),
    ("audit_heads", "*"),
    ("freezes", "scope frozen_by"),
    ("artifact_contents", "tenant digest"),
    ("artifacts", "id call_id tenant digest media_type"),
    ("batches", "*"),
    ("branches", "*"),
    ("budget_rules", "*"),
    ("budget_waits", "*"),
    ("breaker_waits", "*"),
    ("breakers", "*"),
    ("credentials", "kind subject tool header prefix form"),
    ("cron_runs", "id tenant name outcome job_id"),
    ("crons", "tenant name expression timezone overlap_policy missed_policy last_job_id"),
    ("data_keys", "*"),
    ("delegations", "*"),
    ("deliveries", "id webhook_id event_id event state error"),
    ("engagements", "id agent_name digest user_id limited_by"),
    ("elsewhere", "*"),
    ("event_marks", "*"),
    ("forks", "parent_id"),
    ("guardrail_checks", "id side tool"),
    ("idempotency_keys", "name request pushed"),
    ("inheritances", "*"),
    ("input_definitions", "*"),
    ("job_envelopes", "retry"),
    ("job_errors", "code"),
    ("job_schemas", "*"),
    ("job_tags", "*"),
    ("jobs", "*"),
    ("journal", "names model"),
    ("leaders", "*"),
    ("memories", "*"),
    ("pools", "*"),
    ("queues", "*"),
    ("rate_keys", "*"),
    ("rate_limits", "*"),
    ("registered_digests", "*"),
    ("reservations", "*"),
    ("reviews", "id call_id kind reviewer arguments_hash state decided_by plan members asked late"),
    ("run_settings", "agent_name tenant run"),
    ("runs", "marks"),
    ("server_keys", "name"),
    ("state_keys", "scope name"),
    ("state_scopes", "*"),
    ("statistics", "*"),
    ("stubs", "*"),
    ("tenant_limits", "tenant"),
    ("tool_calls", "call_id name state provider tried answered_by"),
    ("tool_retries", "*"),
    ("totals", "*"),
    ("webhooks", "id tenant events filter"),
    ("workers", "*"),
    ("workflow_steps", "name role needs next state job_id job_type"),
    ("workflows", "*"),
    ("writers", "*"),
];
/// Columns of keys that other tables have.
const DERIVED: [(&str, &str); 1] = [("run_events", "run_id")];
/// Statements that touch a sealed column and need not know what is in it.
const BLIND: [&str; 5] = [
    "UPDATE_AGED_MESSAGES",
    "UPDATE_RETIRED_ENGAGEMENTS",
    "SELECT_QUEUE_BYTES",
    "UPDATE_REPEATED_TOOL_CALL",
    "SELECT_WORKFLOW_STEPS_BY_KEY",
];

#[test]
fn every_column_of_text_is_sealed_or_said_to_be_clear() {
    let conn = migrated_in_memory();
    let columns = "SELECT m.name, c.name, c.type FROM sqlite_master AS m, pragma_table_info(m.name) AS c \
                   WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
    let mut known = BTreeSet::new();
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
        let is_sealed = SEALED.get(table.as_str()).is_some_and(|of| of.columns.contains(column.as_str()));
        assert!(
            is_clear != is_sealed,
            "{table}.{column} is {}: declare it sealed in engine/rows, or add it to CLEAR here",
            if is_clear { "both clear and sealed" } else { "neither clear nor sealed" }
        );
    }
    for (table, of) in SEALED.iter() {
        for column in of.columns.iter().chain(of.key) {
            let known = known.contains(&((*table).to_owned(), (*column).to_owned()));
            assert!(known || DERIVED.contains(&(table, column)), "there is no {table}.{column}");
        }
    }
}

/// Returns the statements that encrypted stores use, by name.
fn statements() -> impl Iterator<Item = (&'static str, &'static Text)> {
    let all = sql::ALL.iter().flat_map(|(name, texts)| texts.iter().map(move |text| (*name, text)));
    all.filter(|(_, text)| !text.sqlite.is_empty())
}

#[test]
fn what_is_written_to_a_sealed_column_has_a_name() {
    let mut seen = 0;
    for (name, text) in statements() {
        let Some((table, sealing)) = written(text) else { continue };
        let assigned = text.sqlite.split("WHERE").next().unwrap_or_default();
        let words = words(assigned);
        for column in sealing.columns.iter().filter(|column| words.contains(*column)) {
            seen += 1;
            let has = |column: &&str| text.columns.is_empty() || text.columns.contains(column);
            let is_known = !BLIND.contains(&name);
            assert!(!is_known || (has(column) && sealing.key.iter().all(has)), "{name}: {table}.{column}");
            assert!(
                !is_known || text.sqlite.contains("json_each("),
                "{name} takes {table}.{column} as a single value"
            );
        }
    }
    assert!(seen > 20, "only {seen} columns were looked at");
}

#[test]
fn what_is_read_of_a_sealed_column_has_its_key_and_one_table() {
    let mut seen = 0;
    for (name, text) in statements().filter(|(name, _)| !BLIND.contains(name)) {
        if !(name.starts_with("SELECT") || name.starts_with("LOCK")) {
            continue;
        }
        let words = words(text.sqlite);
        let mut columns = BTreeSet::new();
        for found in of_statement(text) {
            seen += 1;
            for key in found.key {
                assert!(words.contains(key), "{name} reads {} without its key `{key}`", found.table);
            }
            for column in found.columns {
                assert!(columns.insert(column), "{name} reads a `{column}` of two tables");
            }
        }
    }
    assert!(seen > 50, "only {seen} statements were looked at");
    assert!(
        sql::SELECT_DIRECTIVES_BY_JOB.sqlite.contains(MARK)
            && sql::SELECT_DIRECTIVES_BY_JOB.postgres.contains(MARK)
    );
}
