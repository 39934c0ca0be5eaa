//! Tools without an agent: `require_agent` refuses jobs whose calls no restriction and no review would guard.

use super::Client;
use serde_json::json;
use turnstone_tests::{Backend, Fleet, OjsServer};

const AGENT: &str =
    "kind: openagentspec:v1/agent\nname: desk\ndescription: A desk.\nintent: You help.\nowner: olga\n";

#[tokio::test]
async fn a_job_without_an_agent_is_refused_where_one_is_required() {
    for backend in Backend::ALL {
        let server = OjsServer::over(Fleet::builder().on(backend).workers(0).require_agent().start().await);
        server.post_text("/agents", AGENT).await.expect(201);
        let admin =
            Client::new(&server, &json!({"name": "root", "roles": ["admin"], "acts_for": ["*"]})).await;
        let bare = json!({"type": "agent.pay", "args": ["pay"], "ext_agent_model": "test/m",
                          "ext_agent_tools": [{"name": "book"}]});
        let step = json!({"type": "chain", "name": "c", "steps": [bare, {"type": "a.b", "args": []}]});
        let cron = json!({"name": "c", "expression": "* * * * *", "job_template": bare});
        for (path, body) in [
            ("/ojs/v1/jobs", &bare),
            ("/ojs/v1/jobs/batch", &json!({"jobs": [bare]})),
            ("/ojs/v1/workflows", &step),
            ("/ojs/v1/cron", &cron),
        ] {
            let refused = admin.post(path, body).await;
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (403, "forbidden"),
                "{path}: {}",
                refused.text
            );
        }
        assert_eq!(server.stored_jobs().await, 0);
        let named = json!({"type": "agent.ask", "args": ["hi"], "meta": {"agent": "desk"}});
        admin.post("/ojs/v1/jobs", &named).await.expect(201);
        admin.post("/ojs/v1/jobs", &json!({"type": "a.b", "args": []})).await.expect(201);
        server.fleet.end().await;
    }
}
