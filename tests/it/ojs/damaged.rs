//! A damaged row is an error of its own job in a list, and does not hide the others.

use super::on_every_store;
use super::operate::dead;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_every_store![
    a_list_names_the_damaged_job_and_has_the_others,
    a_list_of_dead_letters_names_the_damaged_one,
    a_fetch_gets_the_jobs_beside_damaged_ones,
    leases_expire_beside_a_damaged_job,
];

/// Returns the job with this id from a list.
fn member(list: &Value, of: &str, id: &str) -> Value {
    let jobs = list[of].as_array().unwrap_or_else(|| panic!("no {of}: {list:#}"));
    jobs.iter().find(|job| job["id"] == id).unwrap_or_else(|| panic!("{id} is missing: {list:#}")).clone()
}

async fn a_list_names_the_damaged_job_and_has_the_others(server: &OjsServer) {
    let mut ids = Vec::new();
    for n in 0..4 {
        let job = json!({"type": "mail.send", "args": [n], "options": {"queue": "q"}});
        ids.push(server.push(&job).await);
    }
    let of = |id: &str| format!("job_seq = (SELECT seq FROM jobs WHERE id = '{id}')");
    let place = &server.fleet.place;
    place.change(&format!("UPDATE job_envelopes SET args = '[1' WHERE {}", of(&ids[1]))).await;
    place.change(&format!("UPDATE jobs SET position = '[' WHERE id = '{}'", ids[2])).await;
    for (path, jobs) in [("/ojs/v1/jobs?queue=q", "jobs"), ("/ojs/v1/admin/jobs?queue=q", "items")] {
        let list = server.get(path).await.expect(200).json();
        assert_eq!(list["pagination"]["total"], 4, "{list:#}");
        for (n, id) in ids.iter().enumerate().filter(|(n, _)| [0, 3].contains(n)) {
            let whole = member(&list, jobs, id);
            assert_eq!((&whole["args"], &whole["damaged"]), (&json!([n]), &Value::Null), "{path}");
        }
        let unread = member(&list, jobs, &ids[1]);
        assert!(unread["damaged"].as_str().unwrap().contains("column args"), "{unread:#}");
        assert_eq!(
            (&unread["type"], &unread["queue"], &unread["state"]),
            (&json!("mail.send"), &json!("q"), &json!("available"))
        );
        let partly = member(&list, jobs, &ids[2]);
        assert!(partly["damaged"].as_str().unwrap().contains("column position"), "{partly:#}");
        assert_eq!(partly["args"], json!([2]), "readable jobs are listed");
    }
    assert_eq!(server.job(&ids[0]).await["damaged"], Value::Null);
    assert!(server.job(&ids[1]).await["damaged"].as_str().unwrap().contains("column args of job_envelopes"));
}

async fn a_list_of_dead_letters_names_the_damaged_one(server: &OjsServer) {
    let (whole, broken) = (dead(server, "q", "mail.send").await, dead(server, "q", "mail.send").await);
    let damage = format!(
        "UPDATE job_errors SET error = 'no' WHERE job_seq = (SELECT seq FROM jobs WHERE id = '{broken}')"
    );
    server.fleet.place.change(&damage).await;
    for (path, jobs) in [("/ojs/v1/dead-letter", "jobs"), ("/ojs/v1/admin/dead-letter", "items")] {
        let list = server.get(path).await.expect(200).json();
        assert_eq!(member(&list, jobs, &whole)["damaged"], Value::Null);
        let unread = member(&list, jobs, &broken);
        assert!(unread["damaged"].as_str().unwrap().contains("column error"), "{unread:#}");
        assert_eq!(unread["state"], "discarded");
    }
}

/// Enqueues plain jobs and returns their ids.
async fn pushed<const N: usize>(server: &OjsServer) -> [String; N] {
    let mut ids = Vec::new();
    for n in 0..N {
        ids.push(server.push(&json!({"type": "mail.send", "args": [n], "options": {"queue": "q"}})).await);
    }
    ids.try_into().unwrap()
}

/// Sets a column of what the client of a job sent.
async fn damage(server: &OjsServer, id: &str, column: &str, text: &str) {
    let sql = format!(
        "UPDATE job_envelopes SET {column} = '{text}' WHERE job_seq = (SELECT seq FROM jobs WHERE id = '{id}')"
    );
    server.fleet.place.change(&sql).await;
}

/// Asserts that a job is a dead letter that names the column, and that a GET shows it.
async fn is_dead_letter(server: &OjsServer, id: &str, column: &str) {
    let job = server.job(id).await;
    assert_eq!(job["state"], "discarded", "{job:#}");
    let said = job.to_string();
    assert!(said.contains("JOB_UNREADABLE") && said.contains(&format!("column {column}")), "{job:#}");
    let kept = format!("SELECT count(*) FROM jobs WHERE id = '{id}' AND dead_letter = 1");
    assert_eq!(server.fleet.number(&kept).await, 1);
}

async fn a_fetch_gets_the_jobs_beside_damaged_ones(server: &OjsServer) {
    let [args, retry, whole] = pushed(server).await;
    damage(server, &args, "args", "[1").await;
    damage(server, &retry, "retry", "{").await;
    let body = json!({"queues": ["q"], "count": 5, "worker_id": "w"});
    let fetched = server.post("/ojs/v1/workers/fetch", &body).await.expect(200).json();
    let ids: Vec<&str> =
        fetched["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [whole.as_str()]);
    // A claim in one statement leaves what it cannot read to the next one.
    let fetched = server.post("/ojs/v1/workers/fetch", &body).await.expect(200).json();
    assert_eq!(fetched["jobs"], json!([]));
    is_dead_letter(server, &args, "args").await;
    is_dead_letter(server, &retry, "retry").await;
    server.post(&format!("/ojs/v1/jobs/{whole}/ack"), &json!({})).await.expect(200);
    let metrics = server.get("/metrics").await.expect(200).text;
    assert!(!metrics.contains("turnstone_damaged_rows_total 0\n"), "{metrics}");
}

async fn leases_expire_beside_a_damaged_job(server: &OjsServer) {
    let [broken, whole] = pushed(server).await;
    let body = json!({"queues": ["q"], "count": 5, "worker_id": "w", "visibility_timeout_ms": 1_000});
    let fetched = server.post("/ojs/v1/workers/fetch", &body).await.expect(200).json();
    assert_eq!(fetched["jobs"].as_array().unwrap().len(), 2, "{fetched:#}");
    damage(server, &broken, "retry", "{").await;
    server.pass_ms(2_000).await;
    is_dead_letter(server, &broken, "retry").await;
    assert_eq!(server.job(&whole).await["state"], "available");
}
