//! Further inputs of an engagement, for its user and its operators.

mod asking;
mod commands;
mod killed;
mod order;
mod refusals;

use reqwest::{Method, redirect};
use serde_json::{Value, json};
use turnstone_tests::Fleet;

/// Registers an agent with these lines below its head.
pub async fn register(fleet: &Fleet, rest: &str) {
    let document = format!(
        "kind: \"openagentspec:v1/agent\"\nname: desk\ndescription: Answers.\nintent: You answer.\nowner: tests\n{rest}"
    );
    let (status, body) = fleet.send(Method::PUT, "/agents/desk", document).await;
    assert!(status.is_success(), "{body:#}");
}

/// Posts an input and returns the status and the body, following no redirect.
pub async fn post(fleet: &Fleet, path: &str, body: &Value, headers: &[(&str, &str)]) -> (u16, Value) {
    let client = turnstone_tests::http::client_builder().redirect(redirect::Policy::none()).build().unwrap();
    let request = client.post(format!("{}{path}", fleet.url)).header("content-type", "application/json");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let answer = request.body(body.to_string()).send().await.unwrap();
    let status = answer.status().as_u16();
    if status == 303 {
        let body: Value = answer.json().await.unwrap();
        return (status, body);
    }
    (status, answer.json().await.unwrap_or_default())
}

/// Begins an engagement and returns its id and its first job.
pub async fn begin(fleet: &Fleet, text: &str) -> (String, String) {
    let said = json!({"input": text, "metadata": {"user": {"id": "ann"}}});
    let (status, begun) = post(fleet, "/agents/desk", &said, &[]).await;
    assert_eq!(status, 303, "{begun:#}");
    let id = begun["engagement_id"].as_str().unwrap().to_owned();
    let job = state(fleet, &id).await["job_id"].as_str().unwrap().to_owned();
    (id, job)
}

/// Sends a further input and returns its job.
pub async fn send(fleet: &Fleet, id: &str, text: &str, query: &str) -> String {
    let (status, taken) = post(fleet, &format!("/engagements/{id}{query}"), &json!(text), &[]).await;
    assert_eq!(status, 303, "{taken:#}");
    assert_eq!(taken["location"], format!("/engagements/{id}"));
    taken["job_id"].as_str().unwrap().to_owned()
}

/// Returns the engagement's state.
pub async fn state(fleet: &Fleet, id: &str) -> Value {
    fleet.get(&format!("/engagements/{id}")).await
}

/// Returns the role and text of each message of a model request.
pub fn said(request: &Value) -> Vec<(String, String)> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    messages
        .iter()
        .filter(|m| m["role"] != "system")
        .map(|m| (text(&m["role"]), text(&m["content"])))
        .collect()
}
