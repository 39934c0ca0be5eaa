//! When entries fire, and that each occurrence fires once.

use super::super::on_every_store;
use super::{MINUTE, entry, every_minute, jobs, outcomes, states, to_the_minute};
use crate::conformance::jobs::plain;
use futures::future::join_all;
use serde_json::json;
use std::collections::BTreeSet;
use turnstone_domain::NewJob;
use turnstone_scheduler::SchedulerOptions;
use turnstone_store::{Firing, StoreError};
use turnstone_tests::OjsServer;

on_every_store![
    a_job_is_made_at_the_minute_and_once,
    one_job_replaces_missed_occurrences,
    all_missed_occurrences_fire_when_configured,
    missed_occurrences_are_skipped_when_configured,
    an_agent_is_looked_up_when_its_entry_fires,
    a_triggered_job_does_not_move_the_entry,
    of_two_schedulers_one_makes_the_job_of_an_occurrence,
    a_former_leader_makes_no_job,
    history_keeps_the_latest_hundred,
    an_entry_cannot_make_a_job_that_a_request_could_not,
];

async fn a_job_is_made_at_the_minute_and_once(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({})).await;
    server.pass_ms(MINUTE - 1).await;
    assert_eq!(server.stored_jobs().await, 0);
    server.pass_ms(1).await;
    server.fleet.tick().await;
    let jobs = jobs(server).await;
    assert_eq!(jobs.len(), 1);
    let (job, now) = (&jobs[0], server.fleet.now().to_rfc3339());
    assert_eq!(
        (&job["state"], &job["type"], &job["queue"]),
        (&json!("available"), &json!("report.build"), &json!("reports"))
    );
    assert_eq!(job["args"], json!(["n", 1]));
    assert_eq!(job["meta"]["cron_name"], "n");
    assert_eq!(
        (&job["meta"]["cron_triggered_at"], &job["meta"]["cron_scheduled_at"]),
        (&json!(now), &json!(now))
    );
    let entry = entry(server, "n").await;
    assert_eq!(
        (&entry["run_count"], &entry["last_run_at"], &entry["last_job_id"]),
        (&json!(1), &json!(now), &job["id"])
    );
    assert_eq!(entry["next_run_at"], server.fleet.now().plus_ms(MINUTE).to_rfc3339());
    assert_eq!(
        server.fleet.event_names(job["id"].as_str().unwrap()).await,
        ["job.enqueued", "cron.triggered"]
    );
}

async fn one_job_replaces_missed_occurrences(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({"overlap_policy": "allow"})).await;
    server.pass_ms(10 * MINUTE + 20_000).await;
    let jobs = jobs(server).await;
    assert_eq!(jobs.len(), 1);
    let latest = server.fleet.now().plus_ms(-20_000).to_rfc3339();
    assert_eq!(jobs[0]["meta"]["cron_scheduled_at"], latest);
    server.pass_ms(40_000).await;
    assert_eq!(states(server).await.len(), 2, "it continues as before");
}

async fn all_missed_occurrences_fire_when_configured(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({"overlap_policy": "allow", "missed_policy": "all"})).await;
    server.pass_ms(5 * MINUTE).await;
    assert_eq!(states(server).await.len(), 5);
    server.pass_ms(1_000 * MINUTE).await;
    assert_eq!(server.stored_jobs().await, 105, "the number of missed occurrences is bounded");
    server.pass_ms(MINUTE).await;
    assert_eq!(server.stored_jobs().await, 106);
}

async fn missed_occurrences_are_skipped_when_configured(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({"missed_policy": "skip"})).await;
    server.pass_ms(5 * MINUTE + 30_000).await;
    assert_eq!(server.stored_jobs().await, 0);
    server.pass_ms(30_000).await;
    assert_eq!(states(server).await, ["available"]);
}

async fn an_agent_is_looked_up_when_its_entry_fires(server: &OjsServer) {
    to_the_minute(server).await;
    let template = json!({"type": "agent.digest", "args": ["news"], "meta": {"agent": "digester"}});
    every_minute(server, "agent", json!({"job_template": template})).await;
    every_minute(server, "plain", json!({})).await;
    server.pass_ms(MINUTE).await;
    assert_eq!(outcomes(server, "agent").await, ["failed"]);
    let failed = entry(server, "agent").await;
    assert!(failed["last_error"].as_str().unwrap().contains("digester"), "{failed:#}");
    assert_eq!(
        (&failed["run_count"], outcomes(server, "plain").await),
        (&json!(0), vec!["triggered".to_owned()])
    );
    let agent = "kind: \"openagentspec:v1/agent\"\nname: digester\ndescription: An agent that digests.\n\
                 intent: You digest.\nowner: tests\n";
    let registered =
        server.send(reqwest::Method::POST, "/agents", &[("content-type", "application/yaml")], agent).await;
    registered.expect(201);
    server.pass_ms(MINUTE).await;
    let entry = entry(server, "agent").await;
    assert_eq!((&entry["run_count"], &entry["last_error"]), (&json!(1), &json!(null)));
    let job = server.job(entry["last_job_id"].as_str().unwrap()).await;
    assert!(job["ext_agent_engagement_id"].is_string(), "{job:#}");
    assert_eq!(job["meta"]["cron_name"], "agent");
}

async fn a_triggered_job_does_not_move_the_entry(server: &OjsServer) {
    let made = every_minute(server, "n", json!({"enabled": false})).await;
    for count in 1..=2 {
        let reply = server.post_text("/ojs/v1/cron/n/trigger", "").await.expect(201).json();
        assert_eq!(reply["job"]["state"], "available");
        assert_eq!(
            (&reply["cron"]["run_count"], &reply["cron"]["next_run_at"]),
            (&json!(count), &made["next_run_at"])
        );
    }
    let history = server.get("/ojs/v1/cron/n/history").await.expect(200).json();
    assert_eq!(history["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(history["runs"][0]["job_id"], history["jobs"][0]["id"]);
}

/// Two schedulers, concurrently and one after the other, while the leadership moves between them.
async fn of_two_schedulers_one_makes_the_job_of_an_occurrence(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({"overlap_policy": "allow"})).await;
    let [one, other] = ["one", "other"].map(|holder| server.fleet.scheduler(SchedulerOptions::new(holder)));
    for minute in 1..=4_i64 {
        // The leader's term has expired, so either may lead.
        server.fleet.clock.advance_ms(MINUTE);
        let (first, second) = tokio::join!(one.tick(), other.tick());
        assert_eq!(first.unwrap() + second.unwrap(), 1, "minute {minute}");
        assert_eq!(server.stored_jobs().await, minute);
        for scheduler in [&one, &other, &one] {
            assert_eq!(scheduler.tick().await.unwrap(), 0, "minute {minute}");
        }
        assert_eq!(server.stored_jobs().await, minute);
    }
    let occurrences: BTreeSet<String> = jobs(server)
        .await
        .iter()
        .map(|job| job["meta"]["cron_scheduled_at"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(occurrences.len(), 4, "each job is of another occurrence: {occurrences:?}");
    assert_eq!(outcomes(server, "n").await, ["triggered"; 4]);
}

/// A scheduler reads an occurrence, loses the leadership, and then tries to fire it.
async fn a_former_leader_makes_no_job(server: &OjsServer) {
    every_minute(server, "n", json!({})).await;
    server.fleet.clock.advance_ms(MINUTE);
    let (store, now) = (&server.fleet.store, server.fleet.now());
    let entry = store.crons.due(now, 10).await.unwrap().remove(0);
    let firing = || {
        let job = NewJob { queue: "reports".to_owned(), run_at: now, created_at: now, ..plain(0) };
        let due = vec![(now, Ok(job))];
        Firing { entry: entry.clone(), due, next_run_at: Some(now.plus_ms(MINUTE)), at: now }
    };
    let former = store.upkeep.lead("one", 1_000, now).await.unwrap().unwrap();
    let later = now.plus_ms(1_000);
    let term =
        store.upkeep.lead("other", 60_000, later).await.unwrap().expect("the term of the other is over");
    assert!(matches!(store.crons.fire(firing(), &former).await, Err(StoreError::Deposed)));
    assert_eq!((server.stored_jobs().await, outcomes(server, "n").await.len()), (0, 0));
    let at_once = [&former, &term, &term, &former, &term].map(|term| store.crons.fire(firing(), term));
    let fired = join_all(at_once).await;
    assert_eq!(fired.iter().filter(|fired| matches!(fired, Ok(Some(1)))).count(), 1, "{fired:?}");
    assert_eq!(fired.iter().filter(|fired| matches!(fired, Ok(None))).count(), 2, "{fired:?}");
    assert_eq!(
        fired.iter().filter(|fired| matches!(fired, Err(StoreError::Deposed))).count(),
        2,
        "{fired:?}"
    );
    assert_eq!((server.stored_jobs().await, states(server).await), (1, vec!["available".to_owned()]));
    assert_eq!(outcomes(server, "n").await, ["triggered"]);
    store.upkeep.resign(&term).await.unwrap();
}

async fn history_keeps_the_latest_hundred(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({"overlap_policy": "allow", "missed_policy": "all"})).await;
    server.pass_ms(100 * MINUTE).await;
    server.pass_ms(3 * MINUTE).await;
    assert_eq!(outcomes(server, "n").await.len(), 100);
    assert_eq!(server.fleet.number("SELECT count(*) FROM cron_runs").await, 100);
    server.delete("/ojs/v1/cron/n").await.expect(200);
    assert_eq!(server.fleet.number("SELECT count(*) FROM cron_runs").await, 0);
    assert_eq!(server.stored_jobs().await, 103, "jobs stay");
}

/// Enforced schemas and rules apply to jobs of entries like to requests. A warning does not stop the job.
async fn an_entry_cannot_make_a_job_that_a_request_could_not(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({"overlap_policy": "allow"})).await;
    let schema = json!({"schema": {"type": "array", "maxItems": 1}, "mode": "enforce"});
    server.put("/ojs/v1/admin/schemas/report.build/1", &schema).await.expect(201);
    server.pass_ms(MINUTE).await;
    assert_eq!((server.stored_jobs().await, outcomes(server, "n").await), (0, vec!["failed".to_owned()]));
    let entry_now = entry(server, "n").await;
    let why = entry_now["last_error"].as_str().unwrap();
    assert!(why.contains("version 1") && why.contains("report.build"), "{why}");
    assert_eq!(entry_now["run_count"], 0);
    server.patch("/ojs/v1/admin/schemas/report.build", &json!({"mode": "warn"})).await.expect(200);
    server.pass_ms(MINUTE).await;
    assert_eq!(outcomes(server, "n").await, ["triggered", "failed"]);
    assert_eq!(entry(server, "n").await["last_error"], serde_json::Value::Null);
    let promised = json!({"type": "report.build", "args": [], "meta": {"ojs_validate": true}});
    every_minute(server, "m", json!({"job_template": promised})).await;
    server.pass_ms(MINUTE).await;
    assert_eq!(outcomes(server, "m").await, ["failed"]);
}
