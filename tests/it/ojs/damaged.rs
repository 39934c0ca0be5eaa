//! A damaged row is an error of its own job in a list, and does not hide the others.

use super::on_every_store;
use super::operate::dead;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_every_store![
    a_list_names_the_damaged_job_and_has_the_others,
    a_list_of_dead_letters_names_the_damaged_one,
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
    server.get(&format!("/ojs/v1/jobs/{}", ids[0])).await.expect(200);
    assert_eq!(server.get(&format!("/ojs/v1/jobs/{}", ids[1])).await.status, 500);
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
