//! The answers of `docs/TOOLS.md`, sent as they are written there.

use crate::pages::blocks;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::task::AbortOnDropHandle;
use turnstone_tests::{Fleet, Reply, model_server};
use turnstone_worker::tool::Toolbox;

/// Serves one answer, head and body, for every request. Returns its URL.
async fn served(answer: &str) -> (String, AbortOnDropHandle<()>) {
    let (head, body) = answer.trim_end().split_once("\n\n").unwrap();
    let length = body.len();
    let answer = format!(
        "{}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}",
        head.replace('\n', "\r\n")
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // A request of a test fits into one read.
            let _ = stream.read(&mut [0_u8; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (url, AbortOnDropHandle::new(serving))
}

/// Returns the output of a call of a tool with this answer.
async fn output_of(answer: &str) -> Value {
    let (url, _serving) = served(answer).await;
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("look", json!({})),
        _ => Reply::text("done"),
    };
    let mut fleet = Fleet::builder().workers(0).model(script).start().await;
    let config = json!({"description": "looks", "method": "GET", "url": url, "allow_private": true});
    let config = BTreeMap::from([("look".to_owned(), serde_json::from_value(config).unwrap())]);
    fleet.add_worker_with(1, |mut deps| {
        deps.toolbox = Toolbox::from_config(&config, Arc::clone(&deps.clock)).unwrap();
        deps
    });
    let job = json!({"type": "agent.look", "args": ["go"], "ext_agent_model": "m", "ext_agent_token_budget": 100_000,
                     "ext_agent_tools": [{"name": "look"}]});
    let id = fleet.push(&job).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let engagement = fleet.engagement_of(&id).await;
    let calls = fleet.get(&format!("/engagements/{engagement}/tool-calls")).await;
    let output = calls["tool_calls"][0]["outcome"]["output"].clone();
    fleet.end().await;
    output
}

/// Each answer of the page has the result that the page shows below it. A file has the shown members among others.
#[tokio::test]
async fn a_body_becomes_the_result_that_the_page_shows() {
    let blocks = blocks("docs/TOOLS.md", "## How a body becomes a result");
    assert_eq!(blocks.len(), 8);
    for pair in blocks.chunks(2) {
        assert_eq!((pair[0].info.as_str(), pair[1].info.as_str()), ("http", "json"));
        let mut output = output_of(&pair[0].text).await;
        let shown: Value = serde_json::from_str(&pair[1].text).unwrap();
        if output["type"] == "artifact" {
            let members = shown.as_object().unwrap();
            output.as_object_mut().unwrap().retain(|name, _| members.contains_key(name));
        }
        assert_eq!(output, shown, "{}", pair[0].text);
    }
}
