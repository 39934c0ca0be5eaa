//! The doctor names what a failover of the database may lose.

use super::Site;
use serde_json::Value;
use turnstone_tests::Reply;
use turnstone_tests::servers::{Postgres, WITH_STANDBYS};

/// Returns the finding with these words, and the exit code.
async fn finding(site: &Site, words: &str) -> (Value, Option<i32>) {
    let doctor = site.run(&["doctor", "-o", "json"]).await;
    let findings = doctor.json();
    let found = findings.as_array().unwrap().iter().find(|one| one["what"].as_str().unwrap().contains(words));
    (found.unwrap_or_else(|| panic!("the doctor does not say {words:?}: {doctor:?}")).clone(), doctor.code)
}

/// Asserts that the doctor says this as a remark, with this advice.
async fn remarks(site: &Site, words: &str, advice: &str) {
    let (finding, code) = finding(site, words).await;
    assert_eq!((finding["ok"].as_bool(), code), (Some(true), Some(0)), "{finding:#}");
    assert!(finding["advice"].as_str().unwrap().contains(advice), "{finding:#}");
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn the_doctor_names_a_primary_without_a_synchronous_standby() {
    let server = Postgres::own_with(WITH_STANDBYS).await;
    let site = Site::over(server.database().await, |_| Reply::text("done")).await;
    assert_eq!(site.run(&["migrate"]).await.code, Some(0));
    remarks(&site, "no synchronous standby: no standby is connected", "since the last backup").await;

    let standby = server.standby("second", server.addr()).await;
    remarks(&site, "no synchronous standby: 1 standby is connected", "a failover loses the commits").await;

    server.configure("synchronous_standby_names", "second").await;
    remarks(&site, "this role cannot see if such a standby is connected", "pg_monitor").await;
    server.psql(&site.database, "GRANT pg_monitor TO turnstone").await;
    let (well, code) =
        finding(&site, "commits wait for a synchronous standby (synchronous_commit is on)").await;
    assert_eq!((&well["advice"], code), (&Value::from(""), Some(0)), "{well:#}");

    let local = format!("ALTER DATABASE {} SET synchronous_commit", site.database.name);
    server.psql(&site.database, &format!("{local} = local")).await;
    remarks(&site, "synchronous_commit is local", "a failover loses the commits").await;
    server.psql(&site.database, &format!("{local} TO DEFAULT")).await;

    // Commits would wait for ever: the doctor looks, and commits nothing.
    standby.stop_immediate().await;
    let (stuck, code) = finding(&site, "commits wait without end").await;
    assert_eq!((&stuck["ok"], code), (&Value::from(false), Some(1)), "{stuck:#}");
    assert!(stuck["advice"].as_str().unwrap().contains("start the standby"), "{stuck:#}");
}
