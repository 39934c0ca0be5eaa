//! A tenant creates so many of each thing, and no more. Other tenants are not affected.

use super::Client;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_api::Caps;
use turnstone_tests::{Backend, Fleet, OjsServer};

fn cron(name: &str) -> Value {
    json!({"name": name, "expression": "0 0 1 1 *", "job_template": {"type": "a.b", "args": []}})
}

fn agent(name: &str) -> String {
    format!(
        "kind: openagentspec:v1/agent\nname: {name}\ndescription: A desk.\nintent: You help.\nowner: olga\n"
    )
}

/// Opens a stream of events, and returns its status with its `Retry-After`.
async fn stream(client: &Client<'_>) -> (reqwest::Response, u16, Option<String>) {
    let url = format!("{}/ojs/v1/events/stream", client.server.fleet.url);
    let answer = turnstone_tests::http::client().get(url).bearer_auth(&client.secret).send().await.unwrap();
    let wait = answer.headers().get("retry-after").map(|wait| wait.to_str().unwrap().to_owned());
    let status = answer.status().as_u16();
    (answer, status, wait)
}

#[tokio::test]
async fn a_tenant_creates_no_more_than_its_caps() {
    for backend in Backend::ALL {
        let caps = Caps { agents: 1, crons: 2, webhooks: 1, streams: 1 };
        let server = OjsServer::over(Fleet::builder().on(backend).workers(0).caps(caps).start().await);
        let alpha = Client::of(&server, "alpha", "admin").await;
        let beta = Client::of(&server, "beta", "admin").await;

        for name in ["a", "b"] {
            alpha.post("/ojs/v1/cron", &cron(name)).await.expect(201);
        }
        let refused = alpha.post("/ojs/v1/cron", &cron("c")).await.expect(409);
        assert_eq!(refused.code(), "too_many_crons");
        assert_eq!(refused.json()["error"]["details"]["maximum"], 2);
        alpha.post("/ojs/v1/cron", &cron("a")).await.expect(200);
        beta.post("/ojs/v1/cron", &cron("c")).await.expect(201);
        server.post("/ojs/v1/cron", &cron("c")).await.expect(201);
        let deleted = alpha.send(Method::DELETE, "/ojs/v1/cron/a", &Value::Null).await;
        assert!(deleted.status < 300, "{}", deleted.text);
        alpha.post("/ojs/v1/cron", &cron("c")).await.expect(201);

        let hooks = "/ojs/v1/webhooks/subscriptions";
        let hook = json!({"url": "http://127.0.0.1:9/x", "events": ["*"]});
        alpha.post(hooks, &hook).await.expect(201);
        assert_eq!(alpha.post(hooks, &hook).await.expect(409).code(), "too_many_webhooks");
        beta.post(hooks, &hook).await.expect(201);
        server.post(hooks, &hook).await.expect(201);
        assert_eq!(server.post(hooks, &hook).await.expect(409).code(), "too_many_webhooks");

        server.post_text("/agents", agent("desk")).await.expect(201);
        let refused = server.post_text("/agents", agent("other")).await.expect(409);
        assert_eq!(refused.code(), "too_many_agents");
        server.post_text("/agents", agent("desk").replace("You help", "You help more")).await.expect(200);

        let (open, status, _) = stream(&alpha).await;
        assert_eq!(status, 200);
        let (refused, status, wait) = stream(&alpha).await;
        assert_eq!((status, wait.as_deref()), (429, Some("1")));
        assert!(refused.text().await.unwrap().contains("too_many_streams"));
        assert_eq!(stream(&beta).await.1, 200);
        drop(open);
        server.fleet.until("the stream is no longer counted", async || stream(&alpha).await.1 == 200).await;
        server.end().await;
    }
}
