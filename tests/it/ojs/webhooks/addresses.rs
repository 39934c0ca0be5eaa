//! Private addresses are called only when they are configured.

use super::super::events::job;
use super::{SUBSCRIPTIONS, deliveries, path, settled_deliveries};
use serde_json::json;
use turnstone_domain::webhook::WebhookChange;
use turnstone_tests::{Backend, Fleet, OjsServer, Receiver};

async fn public(backend: Backend) -> OjsServer {
    OjsServer::over(Fleet::builder().on(backend).workers(0).public_webhooks().start().await)
}

#[tokio::test]
async fn a_private_address_is_refused_when_it_is_registered() {
    let server = public(Backend::Sqlite).await;
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "localhost",
        "api.localhost",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:10.0.0.1]",
        "[fd00::1]",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ] {
        let body = json!({"url": format!("http://{host}:8080/hook"), "events": ["*"]});
        let reply = server.post(SUBSCRIPTIONS, &body).await.expect(400).json();
        assert_eq!(reply["error"]["details"]["field"], "url", "{host}: {reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains("allow_private"), "{reply}");
    }
    // The name is not resolved, so no receiver has to exist.
    let body = json!({"url": "https://example.com/hook", "events": ["*"]});
    let made = server.post(SUBSCRIPTIONS, &body).await.expect(201).json()["subscription"].clone();
    server.patch(&path(&made, ""), &json!({"url": "http://10.0.0.1/"})).await.expect(400);
    assert_eq!(server.fleet.number("SELECT count(*) FROM webhooks").await, 1);
    server.end().await;
}

#[tokio::test]
async fn a_private_address_is_refused_when_it_is_called() {
    for backend in Backend::ALL {
        let server = public(backend).await;
        let receiver = Receiver::start().await;
        let body = json!({"url": "https://example.com/hook", "events": ["*"]});
        let made = server.post(SUBSCRIPTIONS, &body).await.expect(201).json()["subscription"].clone();
        // Stored subscriptions whose host now resolves to this machine, or is one of its addresses.
        let port = receiver.url.rsplit(':').next().unwrap().to_owned();
        for (made_before, host) in ["localhost.", "127.0.0.1"].into_iter().enumerate() {
            let url = format!("http://{host}:{port}");
            let change = WebhookChange { url: Some(url), ..WebhookChange::default() };
            let id = made["id"].as_str().unwrap();
            server
                .fleet
                .store
                .webhooks
                .change_webhook(id, None, change, server.fleet.now())
                .await
                .unwrap()
                .unwrap();
            server.push(&job("q")).await;
            settled_deliveries(&server, &made, made_before + 1).await;
        }
        let refused = deliveries(&server, &made).await;
        assert_eq!(refused.len(), 2);
        for delivery in refused {
            assert_eq!(delivery["state"], "pending", "{delivery}");
            assert!(delivery["error"].as_str().unwrap().contains("public address"), "{delivery}");
        }
        assert_eq!(receiver.count(), 0, "the receiver was reached");
        server.end().await;
    }
}
