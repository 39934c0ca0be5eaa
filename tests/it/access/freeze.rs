//! A freeze of the fleet or of a tenant: no new call of a model or a tool within a second, until it is lifted.

use super::Client;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, OjsServer};

const AGENT: &str = "kind: openagentspec:v1/agent\nname: booker\ndescription: An agent that books.\n\
                     intent: You book.\nowner: olga\ncapabilities:\n  book: {user_identity: false}\n";

async fn begun(server: &OjsServer, tenant: &str) -> String {
    let job = json!({"type": "agent.book", "args": [tenant], "meta": {"agent": "booker"}}).to_string();
    let header = [("X-OJS-Tenant", tenant)];
    let reply = server.send(Method::POST, "/ojs/v1/jobs", &header, job).await.expect(201);
    reply.json()["job"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_frozen_tenant_calls_no_model() {
    for backend in Backend::ALL {
        let server = OjsServer::over(Fleet::builder().on(backend).start().await);
        server.post_text("/agents", AGENT).await.expect(201);
        let alpha = Client::of(&server, "alpha", "operator").await;
        let beta = Client::of(&server, "beta", "operator").await;
        alpha.send(Method::PUT, "/freeze", &json!({"tenant": "beta"})).await.expect(403);
        let frozen = alpha.send(Method::PUT, "/freeze", &json!({"reason": "wrong mails"})).await.expect(200);
        assert_eq!(
            (&frozen.json()["tenant"], &frozen.json()["frozen_by"]),
            (&json!("alpha"), &json!("alpha/operator-of-alpha"))
        );
        let (held, free) = (begun(&server, "alpha").await, begun(&server, "beta").await);
        server.fleet.wait_for(&held, &[JobState::Active]).await;
        server.fleet.wait_for(&free, &[JobState::Completed]).await;
        assert_eq!(server.fleet.models.count(), 1, "that of beta");
        assert_eq!(beta.get("/freeze").await.expect(200).json()["freezes"], json!([]));
        beta.send(Method::DELETE, "/freeze", &Value::Null).await.expect(404);
        assert_eq!(server.job(&held).await["state"], "active");
        alpha.send(Method::DELETE, "/freeze", &Value::Null).await.expect(200);
        server.fleet.wait_for(&held, &[JobState::Completed]).await;
        server.fleet.end().await;
    }
}
