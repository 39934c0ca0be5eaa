//! Failures, retries and discards (OJS retry).

use super::super::on_sqlite_first;
use super::{fetch, held, nack, push, retry};
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_failure_waits_for_its_next_attempt,
    the_last_attempt_discards,
    delays_follow_the_policy,
    a_due_job_is_fetched_before_the_scheduler_has_come_to_it,
    errors_keep_the_workers_message,
    what_is_not_retryable_is_discarded_at_once,
    a_handler_decides_by_its_code,
    an_expired_job_is_no_dead_letter,
];

async fn a_failure_waits_for_its_next_attempt(server: &OjsServer) {
    let id = held(server, retry(3)).await;
    let error = json!({"code": "smtp_busy", "message": "try later", "details": {"host": "mx1"}});
    let reply = nack(server, &id, error).await.expect(200).json();
    for (key, value) in [
        ("state", json!("retryable")),
        ("attempt", json!(1)),
        ("max_attempts", json!(3)),
        ("retry_delay_ms", json!(1000)),
        ("id", json!(id)),
        ("job_id", json!(id)),
    ] {
        assert_eq!(reply[key], value, "{key}");
    }
    let job = server.job(&id).await;
    assert_eq!(reply["job"], job);
    assert_eq!(job["next_retry_at"], reply["next_attempt_at"]);
    let error = &job["error"];
    assert_eq!((&error["code"], &error["type"]), (&json!("smtp_busy"), &json!("smtp_busy")));
    assert_eq!((&error["details"], &error["attempt"]), (&json!({"host": "mx1"}), &json!(1)));
    assert!(fetch(server, json!({})).await.is_empty(), "it is not due");
    server.pass_ms(1_000).await;
    assert_eq!(server.job(&id).await["state"], "available");
    let again = fetch(server, json!({})).await.remove(0);
    assert_eq!((&again["attempt"], &again["retry_delay_ms"]), (&json!(2), &json!(1000)));
}

async fn the_last_attempt_discards(server: &OjsServer) {
    for max_attempts in [0, 1] {
        let id = held(server, retry(max_attempts)).await;
        let reply = nack(server, &id, json!({"code": "e"})).await.expect(200).json();
        assert_eq!((&reply["state"], &reply["attempt"]), (&json!("discarded"), &json!(1)));
        let job = server.job(&id).await;
        assert!(reply["discarded_at"].is_string());
        assert_eq!(
            (&job["discarded_at"], &job["completed_at"]),
            (&reply["discarded_at"], &reply["completed_at"])
        );
        assert_eq!(reply.get("retry_delay_ms"), None);
    }
}

async fn delays_follow_the_policy(server: &OjsServer) {
    for (policy, delays) in [
        (json!({"backoff_coefficient": 3.0}), [1000, 3000, 9000]),
        (json!({"backoff_strategy": "linear"}), [1000, 2000, 3000]),
        (json!({"backoff_strategy": "constant"}), [1000, 1000, 1000]),
        (json!({"max_interval": "PT1.5S"}), [1000, 1500, 1500]),
    ] {
        let mut options = retry(9);
        for (key, value) in policy.as_object().unwrap() {
            options["retry"][key] = value.clone();
        }
        let id = push(server, options).await;
        for delay in delays {
            fetch(server, json!({})).await;
            let reply = nack(server, &id, json!({"code": "e"})).await.expect(200).json();
            assert_eq!(reply["retry_delay_ms"], delay, "{policy}");
            server.pass_ms(delay).await;
        }
        server.delete(&format!("/ojs/v1/jobs/{id}")).await.expect(200);
    }
    let options = json!({"retry": {"max_attempts": 3, "initial_interval": "PT2S", "jitter": true}});
    let id = held(server, options).await;
    let reply = nack(server, &id, json!({"code": "e"})).await.expect(200).json();
    let delay = reply["retry_delay_ms"].as_i64().unwrap();
    assert!((1000..3000).contains(&delay), "{delay}");
}

async fn a_due_job_is_fetched_before_the_scheduler_has_come_to_it(server: &OjsServer) {
    let id = held(server, retry(3)).await;
    nack(server, &id, json!({"code": "e"})).await.expect(200);
    server.fleet.clock.advance_ms(999);
    assert!(fetch(server, json!({})).await.is_empty());
    server.fleet.clock.advance_ms(1);
    assert_eq!(fetch(server, json!({})).await.len(), 1);
}

async fn errors_keep_the_workers_message(server: &OjsServer) {
    let id = push(server, retry(9)).await;
    let said = [
        (json!({"code": "E1", "message": "a", "type": "Db.Gone"}), "E1", "Db.Gone"),
        (json!({"code": "E2", "message": "b", "details": {"error_class": "Net.Slow"}}), "E2", "Net.Slow"),
        (
            json!({"code": "handler_error", "message": "the connection timed out"}),
            "handler_error",
            "ConnectionTimeout",
        ),
        (json!({"code": "E4", "message": "the connection timed out"}), "E4", "E4"),
        (json!({"message": "only words"}), "handler_error", "handler_error"),
    ];
    for (n, (error, _, _)) in said.iter().enumerate() {
        fetch(server, json!({})).await;
        let reply = nack(server, &id, error.clone()).await.expect(200).json();
        server.pass_ms(reply["retry_delay_ms"].as_i64().unwrap()).await;
        assert_eq!(reply["attempt"], n + 1);
    }
    let job = server.job(&id).await;
    let errors = job["errors"].as_array().unwrap();
    assert_eq!(errors.len(), said.len());
    for (n, ((sent, code, class), shown)) in said.iter().zip(errors).enumerate() {
        assert_eq!((&shown["code"], &shown["type"]), (&json!(code), &json!(class)), "{sent}");
        assert_eq!((&shown["attempt"], &shown["message"]), (&json!(n + 1), &sent["message"]));
        assert!(shown["occurred_at"].is_string());
    }
    assert_eq!(job["error"], errors[errors.len() - 1]);
}

async fn what_is_not_retryable_is_discarded_at_once(server: &OjsServer) {
    let listed = |entry: &str| {
        let mut options = retry(5);
        options["retry"]["non_retryable_errors"] = json!([entry]);
        options
    };
    let cases: [(Value, Value, bool); 6] = [
        (retry(5), json!({"code": "e", "retryable": false}), true),
        (listed("Auth.*"), json!({"code": "e", "type": "Auth.Expired"}), true),
        (listed("Auth.*"), json!({"code": "e", "type": "AuthenticationError"}), false),
        (listed("Auth"), json!({"code": "e", "details": {"error_class": "Auth"}}), true),
        (listed("bad_address"), json!({"code": "bad_address"}), true),
        // Stored as ConnectionTimeout, which is inferred from the message.
        (listed("ConnectionTimeout"), json!({"code": "error", "message": "connection timed out"}), false),
    ];
    for (options, error, ends) in cases {
        let id = held(server, options).await;
        let reply = nack(server, &id, error.clone()).await.expect(200).json();
        assert_eq!(reply["state"], if ends { "discarded" } else { "retryable" }, "{error}");
    }
}

async fn a_handler_decides_by_its_code(server: &OjsServer) {
    let mut dead = retry(5);
    dead["retry"]["on_exhaustion"] = "dead_letter".into();
    dead["retry"]["non_retryable_errors"] = json!(["RETRY"]);
    for (options, code, state, kept) in [
        (retry(5), "DISCARD", "discarded", 0),
        (dead.clone(), "DISCARD", "discarded", 0),
        (retry(5), "DEAD_LETTER", "discarded", 1),
        (retry(5), "FAIL", "discarded", 0),
        (dead.clone(), "FAIL", "discarded", 1),
        (dead.clone(), "RETRY", "retryable", 0),
    ] {
        let id = held(server, options).await;
        let reply = nack(server, &id, json!({"code": code})).await.expect(200).json();
        assert_eq!(reply["state"], state, "{code}");
        let sql = format!(
            "SELECT count(*) FROM jobs WHERE id = '{id}' AND state = 'discarded' AND dead_letter = 1"
        );
        assert_eq!(server.fleet.number(&sql).await, kept, "{code}");
    }
}

async fn an_expired_job_is_no_dead_letter(server: &OjsServer) {
    let mut options = retry(5);
    options["retry"]["on_exhaustion"] = "dead_letter".into();
    options["expires_at"] = "+PT2S".into();
    let id = held(server, options).await;
    server.pass_ms(2_000).await;
    let job = server.job(&id).await;
    assert_eq!((&job["state"], job.get("completed_at")), (&json!("discarded"), None));
    assert_eq!(server.fleet.number("SELECT count(*) FROM jobs WHERE dead_letter = 1").await, 0);
}
