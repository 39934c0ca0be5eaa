//! Subscriptions: made, shown, changed, deleted.

use super::super::on_sqlite_first;
use super::{SUBSCRIPTIONS, path, subscribe};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_subscription_is_made_shown_changed_and_deleted,
    a_secret_is_shown_once,
    an_invalid_subscription_is_refused,
    a_tenant_has_its_own,
];

async fn a_subscription_is_made_shown_changed_and_deleted(server: &OjsServer) {
    let body = json!({"url": "https://example.com/hook?a=b", "events": ["job.completed", "cron.*"], "secret": "whk_1",
                      "filter": {"queues": ["mail"]}, "metadata": {"team": 10}});
    let made = server.post(SUBSCRIPTIONS, &body).await.expect(201).json();
    let subscription = &made["subscription"];
    assert!(subscription["id"].as_str().unwrap().starts_with("sub_"));
    assert_eq!(made["id"], subscription["id"], "flat as well");
    for member in ["url", "events", "secret", "metadata"] {
        assert_eq!(subscription[member], body[member], "{member}");
    }
    assert_eq!(subscription["filter"], json!({"queues": ["mail"], "job_types": []}));
    assert_eq!(
        (&subscription["active"], &subscription["created_at"]),
        (&json!(true), &subscription["updated_at"])
    );

    let mut public = subscription.clone();
    public.as_object_mut().unwrap().remove("secret");
    assert_eq!(server.get(&path(subscription, "")).await.expect(200).json()["subscription"], public);
    assert_eq!(server.get(SUBSCRIPTIONS).await.expect(200).json()["subscriptions"], json!([public]));

    server.fleet.clock.advance_ms(1_000);
    let change = json!({"events": ["*"], "active": false, "filter": {}});
    let changed =
        server.patch(&path(subscription, ""), &change).await.expect(200).json()["subscription"].clone();
    assert_eq!((&changed["events"], &changed["active"]), (&json!(["*"]), &json!(false)));
    assert_eq!((&changed["url"], &changed["metadata"]), (&body["url"], &body["metadata"]), "the rest stays");
    assert!(changed["updated_at"].as_str() > subscription["updated_at"].as_str());
    assert_eq!(server.get(&path(subscription, "")).await.json()["subscription"], changed);

    let gone = server.delete(&path(subscription, "")).await.expect(200).json();
    assert_eq!((&gone["deleted"], &gone["id"]), (&json!(true), &subscription["id"]));
    for (method, rest) in [
        (Method::GET, ""),
        (Method::DELETE, ""),
        (Method::GET, "/deliveries"),
        (Method::POST, "/test"),
        (Method::POST, "/rotate-secret"),
        (Method::POST, "/deliveries/msg_1/redeliver"),
    ] {
        let reply = server.send(method, &path(subscription, rest), &[], "").await.expect(404);
        assert_eq!(reply.code(), "not_found", "{rest}");
    }
    assert_eq!(server.get(SUBSCRIPTIONS).await.json()["subscriptions"], json!([]));
}

async fn a_secret_is_shown_once(server: &OjsServer) {
    let made = subscribe(server, "https://example.com/", &json!({})).await;
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() > 40, "{secret}");
    let rotated =
        server.post(&path(&made, "/rotate-secret"), &json!({"secret": "my-own-new-one"})).await.expect(200);
    assert_eq!(rotated.json()["subscription"]["secret"], "my-own-new-one");
    for shown in [
        server.get(SUBSCRIPTIONS).await.expect(200).text,
        server.get(&path(&made, "")).await.expect(200).text,
        server.patch(&path(&made, ""), &json!({"active": true})).await.expect(200).text,
    ] {
        assert!(
            !shown.contains(secret) && !shown.contains("my-own-new-one") && !shown.contains("secret"),
            "{shown}"
        );
    }
    let another = subscribe(server, "https://example.com/", &json!({})).await;
    assert_ne!(another["secret"], made["secret"]);
}

async fn an_invalid_subscription_is_refused(server: &OjsServer) {
    let refuse = async |body: Value, field: &str| {
        let reply = server.post(SUBSCRIPTIONS, &body).await.expect(400).json();
        assert_eq!(reply["error"]["details"]["field"], field, "{body}: {reply}");
    };
    refuse(json!({"events": ["*"]}), "url").await;
    refuse(json!({"url": "https://example.com", "events": []}), "events").await;
    refuse(json!({"url": "https://example.com", "events": ["job.*.x"]}), "events").await;
    refuse(json!({"url": "https://ann:pw@example.com", "events": ["*"]}), "url").await;
    refuse(json!({"url": "gopher://example.com", "events": ["*"]}), "url").await;
    server.post_text(SUBSCRIPTIONS, "[]").await.expect(400);
    let made = subscribe(server, "https://example.com/", &json!({})).await;
    for change in [json!({}), json!({"secret": "x"}), json!({"url": "nowhere"}), json!({"active": 1})] {
        server.patch(&path(&made, ""), &change).await.expect(400);
    }
    for rotation in [json!({"grace_seconds": -1}), json!({"secret": ""})] {
        server.post(&path(&made, "/rotate-secret"), &rotation).await.expect(400);
    }
    server.get(&path(&made, "/deliveries?state=lost")).await.expect(400);
    assert_eq!(server.fleet.number("SELECT count(*) FROM webhooks").await, 1);
}

async fn a_tenant_has_its_own(server: &OjsServer) {
    let body = json!({"url": "https://example.com/", "events": ["*"]}).to_string();
    let alpha = [("x-ojs-tenant", "alpha")];
    let made = server.send(Method::POST, SUBSCRIPTIONS, &alpha, body).await.expect(201).json();
    let place = path(&made, "");
    for (tenant, status, listed) in [("alpha", 200, 1), ("beta", 404, 0)] {
        let headers = [("x-ojs-tenant", tenant)];
        server.send(Method::GET, &place, &headers, "").await.expect(status);
        server.send(Method::PATCH, &place, &headers, r#"{"active":true}"#).await.expect(status);
        server.send(Method::POST, &format!("{place}/rotate-secret"), &headers, "").await.expect(status);
        server.send(Method::GET, &format!("{place}/deliveries"), &headers, "").await.expect(status);
        let list = server.send(Method::GET, SUBSCRIPTIONS, &headers, "").await.expect(200).json();
        assert_eq!(list["subscriptions"].as_array().unwrap().len(), listed, "{tenant}");
    }
    server.send(Method::DELETE, &place, &[("x-ojs-tenant", "beta")], "").await.expect(404);
    server.delete(&place).await.expect(200);
}
