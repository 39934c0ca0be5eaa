//! `turnstone doctor --data` names every damaged value, and raw rows are shown to operators.

use super::schema::cells;
use super::stage::Stage;
use crate::program::{Program, Ran, run};
use crate::sealed::{key, sealed};
use serde_json::{Value, json};
use std::path::Path;
use turnstone_tests::servers::TcpProxy;
use turnstone_tests::{Backend, OjsServer, Place, scratch};

/// Runs `doctor --data` on a database.
async fn doctor(place: &Place, format: &str) -> Ran {
    doctor_with(place, format, &[]).await
}

/// Runs `doctor --data` on a database, with these variables in its environment.
async fn doctor_with(place: &Place, format: &str, variables: &[(&str, &str)]) -> Ran {
    let folder = scratch::folder();
    let mut env = variables.to_vec();
    let data: &Path = match place {
        Place::File(path) => path.parent().unwrap(),
        Place::Url(url) => {
            env.push(("DATABASE_URL", url));
            folder.path()
        }
    };
    std::fs::write(folder.path().join("turnstone.toml"), format!("[server]\ndata = '{}'\n", data.display()))
        .unwrap();
    run(folder.path(), &["doctor", "--data", "-o", format], &env).await
}

/// Returns what `doctor --data` finds.
pub async fn inspected(place: &Place) -> Vec<Value> {
    doctor(place, "json").await.lines()
}

/// Every document that a column of the catalog holds is damaged once: each is named with table, row, column and reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_damaged_document_is_named() {
    for backend in Backend::ALL {
        let stage = Stage::start(backend).await;
        stage.victims().await;
        let place = &stage.server.fleet.place;
        // Rows that the stage made of nothing are damaged already.
        let known = doctor(place, "json").await.lines();
        let mut damaged = Vec::new();
        for cell in cells(place).await {
            let name = (cell.table.clone(), cell.column.clone());
            if DOCUMENTS.contains(&(name.0.as_str(), name.1.as_str()))
                && cell.damage(place, 1).await.is_some()
            {
                damaged.push(name);
            }
        }
        assert!(damaged.len() > 20, "{damaged:?}");
        let ran = doctor(place, "json").await;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let found = ran.lines();
        for (table, column) in damaged {
            let mut new = found.iter().filter(|one| !known.contains(one));
            let named = new.find(|one| one["table"] == *table && one["column"] == *column);
            let named =
                named.unwrap_or_else(|| panic!("{table}.{column} is not named on {backend:?}: {found:#?}"));
            assert!(!named["key"].as_str().unwrap().is_empty() && named["reason"].is_string(), "{named:#}");
        }
        let table = doctor(place, "table").await;
        assert!(
            table.stdout.contains("job_envelopes, row ") && table.stdout.contains(", column args: "),
            "{table:?}"
        );
        stage.server.end().await;
    }
}

/// Columns with documents of which the stage has a row.
const DOCUMENTS: [(&str, &str); 30] = [
    ("queues", "config"),
    ("pools", "config"),
    ("job_envelopes", "retry"),
    ("job_envelopes", "args"),
    ("job_envelopes", "meta"),
    ("job_envelopes", "options"),
    ("job_envelopes", "extra"),
    ("jobs", "position"),
    ("jobs", "runtime_tags"),
    ("job_errors", "error"),
    ("agent_definitions", "definition"),
    ("journal", "body"),
    ("tool_calls", "input"),
    ("reviews", "question"),
    ("reviews", "plan"),
    ("reviews", "votes"),
    ("crons", "template"),
    ("crons", "overlap_policy"),
    ("workflows", "queues"),
    ("workflow_steps", "needs"),
    ("workflow_steps", "next"),
    ("workflow_steps", "job"),
    ("webhooks", "events"),
    ("webhooks", "filter"),
    ("webhooks", "metadata"),
    ("job_schemas", "body"),
    ("idempotency_keys", "pushed"),
    ("workers", "queues"),
    ("rate_keys", "asked"),
    ("breakers", "state"),
];

#[tokio::test]
async fn a_whole_database_is_in_order() {
    for backend in Backend::ALL {
        let server = OjsServer::start(backend).await;
        server.push(&json!({"type": "mail.send", "args": [1]})).await;
        let ran = doctor(&server.fleet.place, "json").await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
        assert!(ran.stderr.contains("all values are in order"), "{ran:?}");
        server.end().await;
    }
}

/// More rows than a page has are all read.
#[tokio::test]
async fn every_page_is_read() {
    let server = OjsServer::start(Backend::Sqlite).await;
    let id = server.push(&json!({"type": "mail.send", "args": [1]})).await;
    let place = &server.fleet.place;
    place
        .change(
            "INSERT INTO statistics (hour, queue, state, jobs, tokens, took_ms) \
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
             SELECT i, 'q', 'completed', 1, 1, 1 FROM n; \
             UPDATE statistics SET jobs = 'many' WHERE hour IN (17, 2500, 5000)",
        )
        .await;
    place
        .change(&format!(
            "DELETE FROM job_envelopes WHERE job_seq = (SELECT seq FROM jobs WHERE id = '{id}')"
        ))
        .await;
    let ran = doctor(place, "json").await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let keys: Vec<Value> = ran.lines().iter().map(|one| one["key"].clone()).collect();
    assert_eq!(keys, ["17/q/completed", "2500/q/completed", "5000/q/completed", "1"]);
    assert_eq!(ran.lines()[3]["id"], id, "a job without an envelope is named, too");
    server.end().await;
}

#[tokio::test]
async fn an_operator_reads_the_raw_rows_of_a_job() {
    for backend in Backend::ALL {
        let server = OjsServer::start(backend).await;
        let id = server.push(&json!({"type": "mail.send", "args": ["hello"]})).await;
        server.fleet.place.change("UPDATE job_envelopes SET args = '[\"hel'").await;
        let path = format!("/ojs/v1/admin/jobs/{id}/raw");
        let raw = server.get(&path).await.expect(200).json();
        let of =
            |table: &str| raw["rows"].as_array().unwrap().iter().find(|row| row["table"] == table).cloned();
        assert_eq!(of("job_envelopes").unwrap()["columns"]["args"], "[\"hel", "{raw:#}");
        assert_eq!(of("jobs").unwrap()["columns"]["id"], id, "{raw:#}");
        assert!(of("journal").is_some(), "{raw:#}");
        server.get("/ojs/v1/admin/jobs/none/raw").await.expect(404);
        let tenant = [("x-ojs-tenant", "acme")];
        assert_eq!(server.send(reqwest::Method::GET, &path, &tenant, "").await.status, 403);
        server.end().await;
    }
}

#[tokio::test]
async fn raw_rows_of_a_job_are_printed() {
    let server = OjsServer::start(Backend::Sqlite).await;
    let id = server.push(&json!({"type": "mail.send", "args": ["hello"]})).await;
    server.fleet.place.change("UPDATE job_envelopes SET args = '[\"hel'").await;
    let folder = scratch::folder();
    let arguments = |id| ["job", "get", "--url", server.fleet.url.as_str(), id, "--raw"];
    let ran = run(folder.path(), &arguments(&id), &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let printed = ran.json();
    let rows = printed["rows"].as_array().unwrap();
    let envelope = rows.iter().find(|row| row["table"] == "job_envelopes").unwrap();
    assert_eq!(envelope["columns"]["args"], "[\"hel", "{printed:#}");
    let ran = run(folder.path(), &arguments("none"), &[]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: "), "{ran:?}");
    server.end().await;
}

/// Sealed values are opened with the configured key and read as the product reads them; none of them is printed.
#[tokio::test]
async fn sealed_values_are_opened_and_read() {
    let secret = key(1);
    let with = [("TURNSTONE_ENCRYPTION__KEY", "env:THE_KEY"), ("THE_KEY", secret.as_str())];
    for backend in Backend::ALL {
        let server = sealed(backend).await;
        for text in ["secret-one", "secret-two", "secret-three"] {
            server.push(&json!({"type": "mail.send", "args": [text], "meta": {"of": text}})).await;
        }
        let place = &server.fleet.place;
        let whole = doctor_with(place, "json", &with).await;
        assert_eq!((whole.code, whole.stdout.as_str()), (Some(0), ""), "{whole:?}");
        place
            .change(
                "UPDATE job_envelopes SET args = substr(args, 1, length(args) - 6) || 'AAAAAA' WHERE job_seq = 1; \
                 UPDATE job_envelopes SET meta = args WHERE job_seq = 2",
            )
            .await;
        let ran = doctor_with(place, "json", &with).await;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let named = ran.lines();
        let named: Vec<(&str, &str)> =
            named.iter().map(|one| (one["key"].as_str().unwrap(), one["column"].as_str().unwrap())).collect();
        assert_eq!(named, [("1", "args"), ("2", "meta")], "{backend:?}: {ran:?}");
        assert!(!format!("{ran:?}").contains("secret-"), "{ran:?}");
        let without = doctor(place, "json").await;
        assert_eq!((without.code, without.stdout.as_str()), (Some(2), ""), "{without:?}");
        assert!(without.stderr.contains("no key is configured"), "{without:?}");
        server.end().await;
    }
}

/// The database goes away while `doctor --data` reads it: it prints what it found so far, and fails with the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_database_that_goes_away_is_an_error() {
    let server = OjsServer::start(Backend::Postgres).await;
    server.push(&json!({"type": "mail.send", "args": ["hello"]})).await;
    let place = server.fleet.place.clone();
    place.change("UPDATE job_envelopes SET args = '[\"hel'").await;
    let Place::Url(url) = &place else { panic!("{place:?} is no address") };
    let address = url.split(['@', '/']).nth(3).unwrap();
    let proxy = TcpProxy::start(address.parse().unwrap()).await;
    let through = url.replace(address, &proxy.addr().to_string());
    // The last table keeps it waiting, so that the database goes away in the middle.
    let locked = place.clone();
    let lock = tokio::spawn(async move {
        locked.try_change("BEGIN; LOCK TABLE workflows IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)").await
    });
    let waits = "SELECT count(*) FROM pg_locks WHERE relation = 'workflows'::regclass AND mode = 'AccessExclusiveLock' AND granted";
    server.fleet.until("the table is locked", async || place.number(waits).await == 1).await;
    let folder = scratch::folder();
    let env = [("DATABASE_URL", through.as_str())];
    let mut doctor = Program::start(folder.path(), &["doctor", "--data", "-o", "json"], &env);
    let found = doctor.says("job_envelopes").await;
    assert!(found.contains("\"column\":\"args\""), "{found}");
    proxy.cut().await;
    assert_eq!(doctor.ended().await, Some(1), "{}", doctor.warned());
    let warned = doctor.warned();
    let errors: Vec<&str> = warned.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(errors.len() == 1 && errors[0].contains("the database"), "{warned}");
    assert!(!warned.contains("rows of"), "it says that everything was read: {warned}");
    lock.abort();
    place.try_change("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()").await.unwrap();
    server.end().await;
}
