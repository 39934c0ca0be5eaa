//! Registering and reading agents.

use super::server::Server;
use serde_json::json;

const HELPER: &str = "kind: \"openagentspec:v1/agent\"
name: helper
description: Answers questions about the shop.
intent: Answer briefly.
owner: u-1
capabilities:
  find:
    collect_results: false
";

#[tokio::test]
async fn an_agent_is_registered_read_back_and_used() {
    let server = Server::start().await;
    let reply = server.post("/agents", HELPER).await;
    assert_eq!((reply.status.as_u16(), reply.header("location")), (201, "/agents/helper"), "{}", reply.text);
    assert_eq!(reply.json()["changed"], true);
    let again = server.post("/agents", HELPER).await;
    assert_eq!((again.status.as_u16(), &again.json()["changed"]), (200, &json!(false)));

    let document = server.get("/agents/helper").await;
    assert_eq!((document.text.as_str(), document.header("content-type")), (HELPER, "application/yaml"));
    let list = server.get("/agents").await.json();
    assert_eq!((&list[0]["name"], &list[0]["url"]), (&json!("helper"), &json!("/agents/helper")));

    let job = server.push(&json!({"type": "agent.run", "args": ["hi"], "meta": {"agent": "helper"}})).await;
    let engagement = job["ext_agent_engagement_id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/engagements/{engagement}")).await.json()["agent"], "helper");
    let wider = json!({"type": "agent.run", "args": [], "meta": {"agent": "helper"}, "ext_agent_tools": [{"name": "rm"}]});
    assert_eq!(server.post("/ojs/v1/jobs", wider.to_string()).await.code(), "AGENT_TOOL_NOT_FOUND");
}

#[tokio::test]
async fn a_document_with_problems_is_refused_with_all_of_them() {
    let server = Server::start().await;
    let unknown_tool = HELPER.replace("find:", "teleport:");
    for document in [unknown_tool.as_str(), "a: [", "", "kind: x", "- 1"] {
        let reply = server.post("/agents", document.to_owned()).await;
        assert_eq!(
            (reply.status.as_u16(), reply.code().as_str()),
            (422, "validation_error"),
            "{document}: {}",
            reply.text
        );
        let problems = reply.json()["error"]["details"]["problems"].as_array().unwrap().clone();
        assert!(
            !problems.is_empty() && problems.iter().all(|problem| problem["rule"].is_string()),
            "{document}"
        );
    }
    assert_eq!(server.post("/agents", vec![0xff_u8, 0xfe]).await.status, 400);
    assert_eq!(server.get("/agents").await.json(), json!([]));
}
