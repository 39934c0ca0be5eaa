//! Sessions that can no longer serve: the schema changes under them, or their server takes no writes. No process needs a
//! restart.

use super::load::{client, job, push};
use super::site::Site;
use crate::program::Program;
use serde_json::{Value, json};
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;

/// Returns a job that a duty makes available.
fn delayed(id: &str) -> Value {
    let mut job = job(id);
    job["options"] = json!({"delay_until": "+PT0.2S"});
    job
}

/// Enqueues so many jobs one after the other; each has to be accepted at once.
async fn all_are_accepted(url: &str, jobs: usize) {
    for _ in 0..jobs {
        assert_eq!(push(&client(), url, &job(&SystemIds.next())).await, Some(201));
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_changed_type_of_a_column_needs_no_restart() {
    let site = Site::start(&[]).await;
    let fleet = site.fleet().await;
    let load = site.load(&fleet);
    site.all_at_work(&fleet).await;
    // Statements that were prepared before fail with 0A000: "cached plan must not change result type".
    let change = "ALTER TABLE jobs ALTER COLUMN job_type TYPE VARCHAR, ALTER COLUMN tenant TYPE VARCHAR;
                  ALTER TABLE leaders ALTER COLUMN holder TYPE VARCHAR;
                  ALTER TABLE queues ALTER COLUMN name TYPE VARCHAR;";
    site.postgres.psql(&site.database, change).await;
    site.all_at_work(&fleet).await;
    let (http, id) = (client(), SystemIds.next());
    assert_eq!(push(&http, &fleet.api.url, &delayed(&id)).await, Some(201));
    load.knows(id);
    for path in ["/ojs/v1/jobs", "/ojs/v1/queues", "/ojs/v1/events"] {
        for _ in 0..10 {
            let answer = http.get(format!("{}{path}", fleet.api.url)).send().await.expect("an answer");
            assert_eq!(answer.status(), 200, "{path}");
        }
    }
    site.ends_well(load, fleet).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn pushes_succeed_after_a_database_took_no_writes() {
    let site = Site::start(&[]).await;
    let mut api = site.api(&site.database.url).await;
    all_are_accepted(&api.url, 1).await;
    let other = site.postgres.named("postgres");
    let set = |what: &str| format!("ALTER DATABASE {} {what}", site.database.name);
    // New sessions are read-only from now on, and stay so when the setting is reset.
    site.postgres.psql(&other, &set("SET default_transaction_read_only = on")).await;
    site.postgres.terminate_connections(&site.database).await;
    let waiting = tokio::spawn({
        let url = api.url.clone();
        async move { futures::future::join_all((0..8).map(|_| all_are_accepted(&url, 1))).await }
    });
    api.program.warns("the database does not answer").await;
    site.postgres.psql(&other, &set("RESET default_transaction_read_only")).await;
    waiting.await.expect("jobs that waited are accepted");
    all_are_accepted(&api.url, 20).await;
    assert_eq!(site.number("SELECT count(*) FROM jobs").await, 1 + 8 + 20);
    api.program.stop().await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn of_two_hosts_the_one_that_takes_writes_is_used() {
    let site = Site::start(&[]).await;
    let second = site.postgres.restored_from_backup().await;
    let (first, both) = (site.postgres.addr(), format!("{},{}", site.postgres.addr(), second.addr()));
    let api = site.api(&site.database.url.replace(&first.to_string(), &both)).await;
    all_are_accepted(&api.url, 5).await;
    assert_eq!(site.number("SELECT count(*) FROM jobs").await, 5);
    // The first server is demoted; its sessions stay open.
    let demote = "ALTER SYSTEM SET default_transaction_read_only = on; SELECT pg_reload_conf();";
    site.postgres.psql(&site.postgres.named("postgres"), demote).await;
    let read_only =
        "SELECT count(*) FROM pg_settings WHERE name = 'default_transaction_read_only' AND setting = 'on'";
    site.until("the first server takes no writes", read_only, |settings| settings == 1).await;
    all_are_accepted(&api.url, 20).await;
    assert_eq!(site.number("SELECT count(*) FROM jobs").await, 5, "a read-only server took a write");
    assert_eq!(second.psql(&site.database, "SELECT count(*) FROM jobs").await, "20");
    api.program.stop().await;
    // A process that starts now finds it at once.
    let api = site.api(&site.database.url.replace(&first.to_string(), &both)).await;
    all_are_accepted(&api.url, 1).await;
    assert_eq!(second.psql(&site.database, "SELECT count(*) FROM jobs").await, "21");
    api.program.stop().await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_leader_whose_duties_fail_resigns() {
    let site = Site::start(&[]).await;
    // This role may lead and read, and may not change jobs.
    let role = "CREATE ROLE lame LOGIN;
                GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO lame;
                GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO lame;
                REVOKE UPDATE ON jobs FROM lame;";
    site.postgres.psql(&site.database, role).await;
    let url = site.database.url.replace("turnstone@", "lame@");
    let mut lame = Program::start(site.path(), &["scheduler"], &[("DATABASE_URL", &url)]);
    lame.first_line("turnstone scheduler ").await;
    site.until("the first scheduler leads", "SELECT count(*) FROM leaders", |leaders| leaders == 1).await;
    let (api, able) = (site.api(&site.database.url).await, site.scheduler().await);
    assert_eq!(push(&client(), &api.url, &delayed(&SystemIds.next())).await, Some(201));
    lame.warns("so it resigns").await;
    let promoted = "SELECT count(*) FROM jobs WHERE state = 'available'";
    site.until("another scheduler promotes the job", promoted, |jobs| jobs == 1).await;
    assert!(lame.runs());
    for program in [lame, able, api.program] {
        program.stop().await;
    }
}
