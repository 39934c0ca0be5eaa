//! The Engagement object, field by field.

use super::{fleet, on_every_store, run};
use serde_json::{Value, json};
use turnstone_tests::Reply;
use turnstone_tests::documents::oas;

/// OAS-56, OAS-57, OAS-58, OAS-59, OAS-60, OAS-61, OAS-62, OAS-63, OAS-64, OAS-65: the names and types of the
/// specification, after three calls of two tools.
#[tokio::test]
async fn the_engagement_object_has_the_fields_of_the_specification() {
    on_every_store(async |backend| {
        let replies = vec![
            Reply::call("search", json!({"q": 1})),
            Reply::call("book", json!({"price": 2})),
            Reply::call("search", json!({"q": 3})),
            // A refused call is no invocation.
            Reply::call("nothing", json!({})),
            Reply::text("done"),
        ];
        let fleet = fleet(backend, replies).await;
        let body = "capabilities: {search: {}, book: {}, hang: {}}";
        fleet.register(oas("busy", body)).await;
        let (_, engagement) = run(&fleet, "busy").await;
        let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
        let object = &audit["engagement"];
        let call = |tool: &str, inputs: Value| json!({"inputs": inputs, "outputs": {"tool": tool, "echo": inputs}});
        assert_eq!(object["user"], json!({"id": "u-17", "email": "u@example.org"}));
        assert_eq!(
            object["recent"],
            json!({"_name": "search", "search": call("search", json!({"q": 3})), "book": call("book", json!({"price": 2}))})
        );
        assert_eq!(
            object["history"],
            json!({
                "_list": ["search", "book", "search"],
                "_total": 3,
                "search": [call("search", json!({"q": 1})), call("search", json!({"q": 3}))],
                "book": [call("book", json!({"price": 2}))],
                "hang": [],
            })
        );
        assert!(object["history"]["_total"].is_i64() || object["history"]["_total"].is_u64());
        assert_eq!(object.as_object().unwrap().len(), 4, "{object:#}");
        let started_at = object["started_at"].as_str().unwrap();
        assert!(turnstone_domain::Timestamp::parse_rfc3339(started_at).is_some(), "{started_at}");
        let again = fleet.get(&format!("/engagements/{engagement}/audit")).await;
        assert_eq!(again["engagement"]["started_at"], started_at);
        fleet.end().await;
    })
    .await;
}

/// OAS-57, OAS-58: without a user there is an id nevertheless, and the address is null.
#[tokio::test]
async fn a_caller_without_a_user_is_anonymous() {
    let fleet = fleet(turnstone_tests::Backend::Sqlite, vec![Reply::text("done")]).await;
    fleet.register(oas("plain", "exposes: {who: user.id, address: user.email}")).await;
    let id = fleet.push(&json!({"type": "agent.policy", "args": ["go"], "meta": {"agent": "plain"}})).await;
    let job = fleet.settled(&id).await;
    assert_eq!(job["result"], json!({"text": "done", "who": "anonymous", "address": null}));
    fleet.end().await;
}
