//! The real program: the key that it needs, its errors without one, and the findings of `doctor` and `config check`.

use super::{key, keys};
use crate::program::{Env, Program, Ran, run};
use std::path::Path;
use turnstone_tests::servers::{Database, Postgres};

/// The setting that names the key.
const REF: (&str, &str) = ("TURNSTONE_ENCRYPTION__KEY", "env:THE_KEY");

async fn refused(folder: &Path, arguments: &[&str], env: Env<'_>, words: &str) {
    let ran = run(folder, arguments, env).await;
    assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
    assert!(ran.stderr.contains(words) && ran.stdout.is_empty(), "{arguments:?}: {ran:?}");
    assert_eq!(ran.stderr.matches("error: ").count(), 1, "more than one sentence: {ran:?}");
}

/// Returns whether the doctor's finding with these words is ok, or `None` without such a finding.
fn found(doctor: &Ran, words: &str) -> Option<bool> {
    let findings = doctor.json();
    let mut findings = findings.as_array().unwrap().iter();
    findings
        .find(|finding| finding["what"].as_str().unwrap().contains(words))
        .map(|finding| finding["ok"] == true)
}

/// Returns a folder whose configuration names a provider: without one, the doctor finds a problem.
fn folder() -> tempfile::TempDir {
    let folder = turnstone_tests::scratch::folder();
    let settings = "[providers.local]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'\n";
    std::fs::write(folder.path().join("turnstone.toml"), settings).expect("a file");
    folder
}

async fn database() -> Database {
    turnstone_tests::fleet::install_crypto();
    Postgres::shared().await.database().await
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn every_service_needs_the_key_of_the_database() {
    let (folder, database, secret) = (folder(), database().await, key(1));
    let with = [("DATABASE_URL", database.url.as_str()), REF, ("THE_KEY", secret.as_str())];
    let without = &with[..1];
    let id = keys(1, &[]).id().to_owned();
    assert_eq!(run(folder.path(), &["migrate"], without).await.code, Some(0));
    let doctor = run(folder.path(), &["doctor", "-o", "json"], without).await;
    assert_eq!(found(&doctor, "not encrypted at rest"), Some(true), "{doctor:?}");
    let doctor = run(folder.path(), &["doctor", "-o", "json"], &with).await;
    assert_eq!(
        found(&doctor, &format!("written from now on is encrypted at rest with key {id}")),
        Some(true)
    );
    let kept = "SELECT count(*) FROM data_keys";
    assert_eq!(Postgres::shared().await.psql(&database, kept).await, "0", "the doctor changed something");

    let mut scheduler = Program::start(folder.path(), &["scheduler"], &with);
    scheduler.first_line("turnstone scheduler ").await;
    let mut worker = Program::start(folder.path(), &["worker", "--name", "w"], &with);
    worker.first_line("turnstone worker w runs ").await;
    worker.stop().await;
    scheduler.stop().await;
    assert_eq!(Postgres::shared().await.psql(&database, kept).await, "1");

    let services = [&["api", "--bind", "127.0.0.1:0"][..], &["scheduler"], &["worker"]];
    let wrong = [with[0], REF, ("THE_KEY", &key(2))];
    for service in services {
        refused(folder.path(), service, without, "and no key is configured: give `key` in [encryption]")
            .await;
        refused(folder.path(), service, &wrong, "which is none of the configured ones").await;
    }
    let doctor = run(folder.path(), &["doctor", "-o", "json"], without).await;
    assert_eq!(
        (doctor.code, found(&doctor, "and no key is configured")),
        (Some(1), Some(false)),
        "{doctor:?}"
    );
    let doctor = run(folder.path(), &["doctor", "-o", "json"], &wrong).await;
    assert_eq!(found(&doctor, "which is none of the configured ones"), Some(false), "{doctor:?}");
    let doctor = run(folder.path(), &["doctor", "-o", "json"], &with).await;
    assert_eq!(
        (doctor.code, found(&doctor, &format!("is encrypted at rest with key {id}"))),
        (Some(0), Some(true))
    );
    for ran in [&doctor, &run(folder.path(), &["config", "show"], &with).await] {
        assert!(!format!("{ran:?}").contains(&secret), "the key is printed");
    }
}

#[tokio::test]
async fn dev_needs_the_key_and_the_doctor_checks_it() {
    let (folder, secret) = (folder(), key(1));
    let with = [REF, ("THE_KEY", secret.as_str())];
    let dev = ["dev", "--bind", "127.0.0.1:0"];
    let mut server = Program::start(folder.path(), &dev, &with);
    server.says("http://127.0.0.1:").await;
    server.stop().await;
    refused(folder.path(), &dev, &[], "and no key is configured").await;
    let id = keys(1, &[]).id().to_owned();
    for (env, code, words, ok) in [
        (&with[..], 0, format!("is encrypted at rest with key {id}"), true),
        (&[][..], 1, "and no key is configured".to_owned(), false),
    ] {
        let doctor = run(folder.path(), &["doctor", "-o", "json"], env).await;
        assert_eq!((doctor.code, found(&doctor, &words)), (Some(code), Some(ok)), "{doctor:?}");
    }
}

#[tokio::test]
async fn the_configuration_is_checked_and_names_the_key() {
    let (folder, secret) = (turnstone_tests::scratch::folder(), key(1));
    let check = ["config", "check", "-o", "json"];
    let with = [REF, ("THE_KEY", secret.as_str())];
    let good = run(folder.path(), &check, &with).await.json();
    assert_eq!((&good["ok"], good["encryption_key"].as_str()), (&true.into(), Some(keys(1, &[]).id())));
    assert_eq!(run(folder.path(), &check, &[]).await.json()["encryption_key"], serde_json::Value::Null);
    for (env, words) in [
        (&[REF][..], "`encryption.key`: the environment variable THE_KEY is not set"),
        (&[REF, ("THE_KEY", "cGFzc3dvcmQ=")][..], "`key` is not 32 bytes in base64"),
        (&[("TURNSTONE_ENCRYPTION__PREVIOUS", "env:THE_KEY"), with[1]][..], "`encryption.key` names none"),
    ] {
        let bad = run(folder.path(), &check, env).await;
        assert_eq!(bad.code, Some(2), "{bad:?}");
        assert!(bad.stdout.contains(words) && !bad.stdout.contains("cGFzc3"), "{bad:?}");
    }
}
