//! The comparison of an answer with its recording.

use super::names::Names;
use super::stage::Ground;
use super::{kinds, page};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The number of differences that a failure prints.
const SHOWN: usize = 8;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/it/recorded/answers"))
}

/// Runs a kind on SQLite, and compares its answers with the recording.
pub async fn on_sqlite(kind: &str, story: impl AsyncFnOnce(Ground) -> Value) {
    check(kind, Ground::Sqlite, story(Ground::Sqlite).await);
}

/// The same with encryption at rest.
pub async fn on_sealed(kind: &str, story: impl AsyncFnOnce(Ground) -> Value) {
    check(kind, Ground::Sealed, story(Ground::Sealed).await);
}

/// The same on PostgreSQL.
pub async fn on_postgres(kind: &str, story: impl AsyncFnOnce(Ground) -> Value) {
    check(kind, Ground::Postgres, story(Ground::Postgres).await);
}

/// Compares the answers of the API with the recording of the kind, or writes the recording when `TURNSTONE_BLESS` is
/// set.
///
/// # Panics
///
/// Panics when they differ, with the first paths that do and both values.
fn check(kind: &str, ground: Ground, answered: Value) {
    let answered = normal(answered);
    let file = folder().join(format!("{kind}.json"));
    if std::env::var_os("TURNSTONE_BLESS").is_some() && ground == Ground::Sqlite {
        std::fs::write(&file, page::render(&answered)).unwrap();
    }
    let bless = format!("run `TURNSTONE_BLESS=1 cargo test --workspace --test it -- sqlite::{kind}`");
    let text = std::fs::read_to_string(&file);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}; {bless}", file.display()));
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let mut differences = Vec::new();
    differ("", &recorded, &answered, &mut differences);
    if differences.is_empty() {
        return;
    }
    let mut reported =
        format!("{kind} on {ground:?}: {} answers differ from the recording\n", differences.len());
    for (path, recorded, answered) in differences.iter().take(SHOWN) {
        writeln!(reported, "at {path}\n  recorded: {recorded}\n  answered: {answered}").unwrap();
    }
    panic!("{reported}When the change is meant, {bless}, and read the diff.");
}

/// Returns the answers with names in place of ids. Jobs and engagements are named first, in the order in which they were made.
fn normal(mut answered: Value) -> Value {
    let mut names = Names::default();
    let fleets = match answered.get_mut("fleets").and_then(Value::as_array_mut) {
        Some(fleets) => fleets.iter_mut().collect(),
        None => vec![&mut answered],
    };
    for fleet in fleets.into_iter().filter_map(Value::as_object_mut) {
        for (kind, ids) in [("job", "job_ids"), ("engagement", "engagement_ids")] {
            names.announce(kind, &fleet.shift_remove(ids).unwrap_or_default());
        }
    }
    names.given(&answered)
}

/// Adds the paths at which two values differ.
fn differ(path: &str, recorded: &Value, answered: &Value, found: &mut Vec<(String, String, String)>) {
    let missing = || "(nothing)".to_owned();
    match (recorded, answered) {
        (Value::Object(a), Value::Object(b)) => {
            for name in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let path = format!("{path}.{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => differ(&path, a, b, found),
                    (a, b) => {
                        let shown = |value: Option<&Value>| value.map_or_else(missing, Value::to_string);
                        found.push((path, shown(a), shown(b)));
                    }
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for at in 0..a.len().max(b.len()) {
                let path = format!("{path}[{at}]");
                match (a.get(at), b.get(at)) {
                    (Some(a), Some(b)) => differ(&path, a, b, found),
                    (a, b) => {
                        let shown = |value: Option<&Value>| value.map_or_else(missing, Value::to_string);
                        found.push((path, shown(a), shown(b)));
                    }
                }
            }
        }
        _ if recorded == answered => {}
        _ => found.push((path.to_owned(), recorded.to_string(), answered.to_string())),
    }
}

/// Every recording belongs to a kind, so that none remains when its kind is removed.
#[test]
fn every_recording_has_its_kind() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let files: BTreeSet<String> =
        files.map(|file| file.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    let kinds: BTreeSet<String> = kinds::all().map(str::to_owned).collect();
    assert_eq!(files, kinds, "recordings (left) and kinds (right)");
}
