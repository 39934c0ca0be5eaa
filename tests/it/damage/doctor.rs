//! `turnstone doctor --data` names every damaged value, and raw rows are shown to operators.

use crate::program::{Ran, run};
use serde_json::{Value, json};
use std::path::Path;
use turnstone_tests::{Backend, OjsServer, Place, scratch};

/// Runs `doctor --data` on a database.
async fn doctor(place: &Place, format: &str) -> Ran {
    let folder = scratch::folder();
    let (data, env) = match place {
        Place::File(path) => (path.parent().unwrap().to_owned(), Vec::new()),
        Place::Url(url) => (folder.path().to_owned(), vec![("DATABASE_URL", url.as_str())]),
    };
    let data: &Path = &data;
    std::fs::write(folder.path().join("turnstone.toml"), format!("[server]\ndata = '{}'\n", data.display()))
        .unwrap();
    run(folder.path(), &["doctor", "--data", "-o", format], &env).await
}

/// Returns what `doctor --data` finds.
pub async fn inspected(place: &Place) -> Vec<Value> {
    doctor(place, "json").await.lines()
}

#[tokio::test]
async fn a_whole_database_is_in_order() {
    for backend in Backend::ALL {
        let server = OjsServer::start(backend).await;
        server.push(&json!({"type": "mail.send", "args": [1]})).await;
        let ran = doctor(&server.fleet.place, "json").await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
        assert!(ran.stderr.contains("all values are in order"), "{ran:?}");
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
    }
}
