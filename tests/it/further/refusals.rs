//! Inputs that an engagement refuses, and operations that an engagement with several inputs refuses.

use super::{begin, post, register, send, state};
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use turnstone_domain::JobState;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// An input needs an existing engagement of the same tenant and user without an open review.
#[tokio::test]
async fn inputs_of_strangers_and_during_a_review_are_refused() {
    join_all(Backend::ALL.map(async |backend| {
        let script = |request: &serde_json::Value| match model_server::outcomes(request) {
            0 => Reply::call("search", json!({"q": "x"})),
            _ => Reply::text("found"),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        register(&fleet, "capabilities: {search: {input_restriction: {require_review: boss}}}\n").await;
        let unknown = "/engagements/0190a7b2-0000-7000-8000-00000000ffff";
        assert_eq!(post(&fleet, unknown, &json!("x"), &[]).await.0, 404);
        let tenant = [("x-ojs-tenant", "acme")];
        let said = json!({"input": "one", "metadata": {"user": {"id": "ann"}}});
        let (_, begun) = post(&fleet, "/agents/desk", &said, &tenant).await;
        let id = begun["engagement_id"].as_str().unwrap().to_owned();
        let path = format!("/engagements/{id}");
        let shown = state(&fleet, &id).await;
        let job = shown["job_id"].as_str().unwrap().to_owned();
        fleet.wait_for(&job, &[JobState::Pending]).await;
        let (status, refused) = post(&fleet, &path, &json!("two"), &tenant).await;
        assert_eq!((status, &refused["error"]["code"]), (409, &json!("conflict")), "{refused:#}");
        assert_eq!(post(&fleet, &path, &json!("two"), &[("x-ojs-tenant", "other")]).await.0, 404);
        let other = json!({"input": "two", "metadata": {"user": {"id": "bob"}}});
        assert_eq!(post(&fleet, &format!("{path}?reopen=true"), &other, &tenant).await.0, 403);
        for bad in [json!({"inputs": "x"}), json!(["x"]), json!({})] {
            assert_eq!(post(&fleet, &path, &bad, &tenant).await.0, 400, "{bad}");
        }
        assert_eq!(post(&fleet, &format!("{path}?reopen=maybe"), &json!("x"), &tenant).await.0, 400);
        let jobs = fleet.number("SELECT count(*) FROM jobs").await;
        assert_eq!(jobs, 1, "no row was stored");
        fleet.end().await;
    }))
    .await;
}

/// An input that waits for its turn is not promoted by hand. An engagement with several inputs is neither forked nor
/// exported.
#[tokio::test]
async fn a_waiting_input_is_not_promoted() {
    join_all(Backend::ALL.map(async |backend| {
        let script = |request: &serde_json::Value| match newest(request) {
            "hang" => Reply::Hang,
            text => Reply::text(format!("re {text}")),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        register(&fleet, "").await;
        let (id, first) = begin(&fleet, "hang").await;
        fleet.models.seen(1).await;
        let second = send(&fleet, &id, "two", "").await;
        let (status, _) = fleet.post(&format!("/ojs/v1/jobs/{second}/activate"), &json!({})).await;
        assert!(status.is_client_error(), "{status}");
        assert_eq!(fleet.job(&second).await["state"], "pending");
        fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{first}"), "").await;
        fleet.settled(&second).await;
        let (status, fork) = fleet.post(&format!("/engagements/{id}/fork"), &json!({"at_turn": 1})).await;
        assert_eq!(status, 409, "{fork:#}");
        let (status, fork) = fleet.post(&format!("/ojs/v1/agents/{second}/fork"), &json!({})).await;
        assert_eq!(status, 409, "{fork:#}");
        let (status, _) = fleet.send(Method::GET, &format!("/engagements/{id}/export"), "").await;
        assert_eq!(status, 409);
        fleet.end().await;
    }))
    .await;
}
