//! A process that cannot work prints the reason in one sentence and changes nothing. It ends with 2 when its
//! configuration is wrong, and with 1 otherwise; `turnstone doctor` finds the problem.

use super::Site;
use crate::program::{Ran, run};
use serde_json::{Value, json};
use turnstone_tests::Reply;
use turnstone_tests::servers::{Port, Postgres};

const SERVICES: [&str; 3] = ["api", "scheduler", "worker"];

async fn migrated() -> Site {
    Site::migrated(|_| Reply::text("done")).await
}

/// Runs each service, which must be refused with these words, and the doctor, which must find the problem.
async fn refused(site: &Site, url: Option<&str>, commands: &[&str], words: &str) {
    refused_with(1, site, url, commands, words).await;
}

/// The same with an exit code.
async fn refused_with(code: i32, site: &Site, url: Option<&str>, commands: &[&str], words: &str) {
    let env: Vec<(&str, &str)> = url.map(|url| ("DATABASE_URL", url)).into_iter().collect();
    for command in commands {
        let arguments: &[&str] =
            if *command == "api" { &["api", "--bind", "127.0.0.1:0"] } else { &[command] };
        let ran = run(site.path(), arguments, &env).await;
        assert_eq!(ran.code, Some(code), "{command}: {ran:?}");
        assert!(ran.stderr.contains(words), "{command} does not say {words:?}: {ran:?}");
        assert_eq!(
            ran.stderr.matches("error: ").count(),
            1,
            "{command} says more than one sentence: {ran:?}"
        );
        assert!(ran.stdout.is_empty(), "{command} said that it runs: {ran:?}");
    }
    let doctor = run(site.path(), &["doctor", "-o", "json"], &env).await;
    assert!(found(&doctor, words), "the doctor does not say {words:?}: {doctor:?}");
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
}

fn found(doctor: &Ran, words: &str) -> bool {
    let findings = doctor.json();
    let says = |finding: &Value, field: &str| finding[field].as_str().unwrap().contains(words);
    findings
        .as_array()
        .unwrap()
        .iter()
        .any(|finding| finding["ok"] == false && (says(finding, "what") || says(finding, "advice")))
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_fleet_needs_postgresql() {
    let site = Site::bare(|_| Reply::text("done")).await;
    let words = "the embedded store serves one process; use `turnstone dev`, or give DATABASE_URL";
    let commands = [&SERVICES[..], &["migrate"]].concat();
    for command in &commands {
        let ran = run(site.path(), &[command], &[]).await;
        assert!(ran.code == Some(2) && ran.stderr.contains(words), "{ran:?}");
    }
    refused_with(2, &site, Some("sqlite:turnstone.db"), &commands, words).await;
    refused_with(
        2,
        &site,
        Some("mysql://me:pass-of-mine@db/t"),
        &commands,
        "is not the address of a PostgreSQL database",
    )
    .await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn an_unreachable_database_is_named_without_its_password() {
    let site = migrated().await;
    let silent = Port::reserve();
    let commands = [&SERVICES[..], &["migrate"]].concat();
    let url = format!("postgres://me:pass-of-mine@{}/t", silent.addr());
    refused(&site, Some(&url), &commands, "the database could not").await;
    let nowhere = site.database.url.replace(&site.database.name, "no_such_database");
    refused(&site, Some(&nowhere), &commands, "no_such_database").await;
    for command in ["worker", "doctor", "config"] {
        let arguments: &[&str] = if command == "config" { &["config", "show"] } else { &[command] };
        let ran = run(site.path(), arguments, &[("DATABASE_URL", &url)]).await;
        let said = ran.stdout + &ran.stderr;
        assert!(!said.contains("pass-of-mine"), "{command} shows the password: {said}");
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_database_without_its_schema_is_refused() {
    let site = Site::bare(|_| Reply::text("done")).await;
    refused(&site, Some(&site.database.url), &SERVICES, "run `turnstone migrate`").await;
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(Postgres::shared().await.psql(&site.database, tables).await, "0", "something was changed");
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_database_of_a_newer_version_is_refused() {
    let site = migrated().await;
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'later', true, '\\x00', 0)";
    Postgres::shared().await.psql(&site.database, newer).await;
    let commands = [&SERVICES[..], &["migrate"]].concat();
    refused(&site, Some(&site.database.url), &commands, "a newer Turnstone made it").await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_database_of_an_unreleased_version_is_refused() {
    let site = migrated().await;
    let other = "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 1";
    Postgres::shared().await.psql(&site.database, other).await;
    let commands = [&SERVICES[..], &["migrate"]].concat();
    refused(&site, Some(&site.database.url), &commands, "Start with an empty database").await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_database_that_takes_no_writes_is_refused() {
    let site = migrated().await;
    let read_only = format!("ALTER DATABASE {} SET default_transaction_read_only = on", site.database.name);
    Postgres::shared().await.psql(&site.database, &read_only).await;
    let commands = [&SERVICES[..], &["migrate"]].concat();
    refused(&site, Some(&site.database.url), &commands, "takes no writes").await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn the_doctor_finds_no_problem_in_a_valid_setup() {
    let site = migrated().await;
    let well = site.run(&["doctor", "-o", "json"]).await;
    assert_eq!(well.code, Some(0), "{well:?}");
    let findings = well.json();
    assert!(findings.as_array().unwrap().iter().all(|finding| finding["ok"] == true), "{findings:#}");
    let table = site.run(&["doctor"]).await;
    assert!(table.stdout.contains("the schema is this version's"), "{table:?}");

    let typo = run(
        site.path(),
        &["doctor", "-o", "json"],
        &[("DATABASE_URL", site.database.url.as_str()), ("TURNSTONE_WORKER__QUEUES", "defualt")],
    )
    .await;
    assert!(typo.code == Some(1) && found(&typo, "did you mean `default`?"), "{typo:?}");
    let open = run(
        site.path(),
        &["doctor", "-o", "json"],
        &[("DATABASE_URL", site.database.url.as_str()), ("TURNSTONE_SERVER__BIND", "0.0.0.0:8080")],
    )
    .await;
    assert!(open.code == Some(1) && found(&open, "server.api_keys"), "{open:?}");
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn the_doctor_finds_a_database_that_confirms_commits_before_they_are_on_disk() {
    let site = migrated().await;
    let early = format!("ALTER DATABASE {} SET synchronous_commit = off", site.database.name);
    Postgres::shared().await.psql(&site.database, &early).await;
    let doctor = site.run(&["doctor", "-o", "json"]).await;
    assert!(doctor.code == Some(1) && found(&doctor, "synchronous_commit is off"), "{doctor:?}");
}

#[tokio::test]
async fn the_doctor_checks_the_embedded_store_too() {
    let folder = turnstone_tests::scratch::folder();
    let bare = run(folder.path(), &["doctor", "-o", "json"], &[]).await;
    assert!(bare.code == Some(1) && found(&bare, "no model provider is configured"), "{bare:?}");
    let provider = "[providers.local]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'\n";
    std::fs::write(folder.path().join("turnstone.toml"), provider).unwrap();
    let well = run(folder.path(), &["doctor", "-o", "json"], &[]).await;
    assert_eq!(well.code, Some(0), "{well:?}");
    assert!(!folder.path().join(".turnstone").exists(), "it made something");
    std::fs::write(folder.path().join(".turnstone"), "a file").unwrap();
    let ill = run(folder.path(), &["doctor", "-o", "json"], &[]).await;
    assert!(ill.code == Some(1) && found(&ill, "server.data"), "{ill:?}");
    std::fs::write(folder.path().join("turnstone.toml"), "[wroker]\n").unwrap();
    let ill = run(folder.path(), &["doctor", "-o", "json"], &[]).await;
    assert!(ill.code == Some(1) && found(&ill, "did you mean `worker`?"), "{ill:?}");
    assert_eq!(ill.json().as_array().unwrap().len(), 1, "{}", json!(ill.json()));
}
