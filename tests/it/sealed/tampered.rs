//! An encrypted value is bound to its place. A value that was changed, or moved to another row, column or table, is
//! refused with its place and without its content, and other rows stay readable.

use super::{completed, sealed};
use serde_json::json;
use turnstone_domain::JobId;
use turnstone_tests::{Backend, OjsServer};

/// Returns why the job cannot be read whole, or nothing when it can.
async fn complaint(server: &OjsServer, id: &str) -> String {
    let job = server.fleet.store.views.job(&JobId::from(id)).await.unwrap();
    job.unwrap().damaged.unwrap_or_default()
}

#[tokio::test]
async fn a_changed_or_moved_value_is_refused_with_its_place() {
    for backend in Backend::ALL {
        for (change, column, table) in [
            (
                "UPDATE job_results SET result = (SELECT o.result FROM job_results AS o WHERE o.job_seq = 2) \
                 WHERE job_seq = 1",
                "result",
                "job_results",
            ),
            ("UPDATE job_envelopes SET meta = args WHERE job_seq = 1", "meta", "job_envelopes"),
            (
                "UPDATE job_envelopes SET args = (SELECT result FROM job_results WHERE job_seq = 1) WHERE job_seq = 1",
                "args",
                "job_envelopes",
            ),
            (
                "UPDATE job_results SET result = substr(result, 1, length(result) - 6) || 'AAAAAA' WHERE job_seq = 1",
                "result",
                "job_results",
            ),
            ("UPDATE job_results SET result = 'sealed:1:1:' WHERE job_seq = 1", "result", "job_results"),
            ("UPDATE job_results SET result = 'sealed:1:9:AAAA' WHERE job_seq = 1", "result", "job_results"),
        ] {
            let server = sealed(backend).await;
            let first = completed(&server, json!(["secret-one"]), json!({"of": "secret-one"})).await;
            let other = completed(&server, json!(["secret-two"]), json!({"of": "secret-two"})).await;
            assert_eq!(complaint(&server, &first).await, "");
            server.fleet.place.change(change).await;
            let said = complaint(&server, &first).await;
            assert!(
                said.contains(&format!("column {column}"))
                    && said.contains(&format!("{table}.{column}, row 1")),
                "{change} on {backend:?}: {said}"
            );
            assert!(!said.contains("secret-"), "{said}");
            assert_eq!(complaint(&server, &other).await, "", "another job is disturbed");
            server.end().await;
        }
    }
}

#[tokio::test]
async fn a_damaged_value_is_named_and_left_out() {
    let server = sealed(Backend::Sqlite).await;
    let id = completed(&server, json!(["secret-one"]), json!({"of": "secret-one"})).await;
    server.fleet.place.change("UPDATE job_results SET result = 'sealed:1:1:AAAA'").await;
    let reply = server.get(&format!("/ojs/v1/jobs/{id}")).await;
    let job = reply.expect(200).json();
    assert!(job["damaged"].as_str().unwrap().contains("column result"), "{job:#}");
    assert_eq!((&job["state"], &job["args"]), (&json!("completed"), &json!(["secret-one"])));
    assert_eq!(server.get("/ojs/v1/jobs?queue=none").await.status, 200);
    server.end().await;
}
