//! Retry policies of models, and addresses that inputs choose.

use super::{end, flow, llm, part, run, start, text, then};
use reqwest::StatusCode;
use serde_json::json;
use turnstone_tests::{Fleet, Reply};

/// AGS-42: the policy of a model counts all its calls, over all attempts of the job, and says which statuses permit
/// another try.
#[tokio::test]
async fn a_model_is_called_as_often_as_its_policy_says() {
    for (status, mut policy, calls) in [
        (500, json!({"max_attempts": 1}), 2),
        (500, json!({"max_attempts": 0}), 1),
        (500, json!({"max_attempts": 2, "service_error_retry_on_any_5xx": false}), 1),
        (418, json!({"max_attempts": 2}), 1),
        (418, json!({"max_attempts": 1, "recoverable_statuses": {"418": []}}), 2),
        (418, json!({"max_attempts": 1, "recoverable_statuses": {"418": ["teapot"]}}), 1),
        (401, json!({"max_attempts": 2}), 1),
    ] {
        let fleet = Fleet::builder().model(move |_| Reply::Status(status)).start().await;
        policy["initial_retry_delay"] = 0.01.into();
        policy["max_retry_delay"] = 0.02.into();
        let mut model = llm(&fleet);
        model["retry_policy"] = policy.clone();
        let node = part("LlmNode", "gen", json!({"llm_config": model, "prompt_template": "go"}));
        let nodes = [start("start", &[]), node, end("end", &[text("generated_text")])];
        let asks = flow("asks", &nodes, &[then("start", "gen"), then("gen", "end")], &[]);
        let job = run(&fleet, asks, json!({})).await;
        assert_eq!(job["state"], "discarded", "{status} {policy}: {job:#}");
        assert_eq!(fleet.models.count(), calls, "{status} {policy}");
        fleet.end().await;
    }
}

/// AGS-32: an input chooses the host of a request only within a list of addresses.
#[tokio::test]
async fn a_placeholder_for_a_host_needs_a_list_of_addresses() {
    let fleet = Fleet::builder().start().await;
    let mut fields = json!({"url": "http://{{host}}/items", "http_method": "GET", "description": "fetches",
                            "inputs": [text("host")], "outputs": [text("r")]});
    for (list, status) in [(None, 422), (Some(json!(["http://items.example/"])), 201)] {
        fields["url_allow_list"] = list.clone().unwrap_or_default();
        let node = part("ToolNode", "get", json!({"tool": part("RemoteTool", "rt", fields.clone())}));
        let nodes = [start("start", &[text("host")]), node, end("end", &[text("r")])];
        let mut gets = flow("gets", &nodes, &[then("start", "get"), then("get", "end")], &[]);
        gets["agentspec_version"] = "26.2.0".into();
        let (answered, body) = fleet.post("/agents", &gets).await;
        assert_eq!(answered, StatusCode::from_u16(status).unwrap(), "{body:#}");
        assert_eq!(body.to_string().contains("AS-61"), status == 422, "{body:#}");
    }
    fleet.end().await;
}
