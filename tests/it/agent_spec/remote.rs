//! Remote agents of Agent Spec documents (`A2AAgent`), by A2A 0.3 and 1.0: alone, in a team, and when they fail.

use super::{answer, awaiting, llm_of, part, register, run, said};
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::task::AbortOnDropHandle;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// A server of A2A 0.3 without a card, and the calls that it received.
pub struct Far {
    pub url: String,
    calls: Arc<Mutex<Vec<Value>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Far {
    /// Starts the server.
    pub async fn start() -> Self {
        let calls: Arc<Mutex<Vec<Value>>> = Arc::default();
        let app = Router::new().route("/far", post(rpc)).with_state(Arc::clone(&calls));
        let (url, serving) = turnstone_tests::http::serve(app).await;
        let url = format!("{url}/far");
        Self { url, calls, _serving: serving }
    }

    /// The messages that it received, in order.
    pub fn messages(&self) -> Vec<Value> {
        let calls = self.calls.lock().unwrap();
        let sent = calls.iter().filter(|call| call["method"] == "message/send");
        sent.map(|call| call["params"]["message"].clone()).collect()
    }
}

/// Works for a while on `Look.`, asks about `Which?`, fails on `Break.`, and answers everything else at once.
async fn rpc(State(calls): State<Arc<Mutex<Vec<Value>>>>, body: String) -> String {
    let call: Value = serde_json::from_str(&body).unwrap();
    calls.lock().unwrap().push(call.clone());
    let text = |text: &str| json!([{"kind": "text", "text": text}]);
    let task =
        |state: &str| json!({"kind": "task", "id": "t-1", "contextId": "c-1", "status": {"state": state}});
    let params = &call["params"];
    let result = match (call["method"].as_str().unwrap(), params["message"]["parts"][0]["text"].as_str()) {
        ("message/send", Some("Look.")) => task("submitted"),
        ("message/send", Some("Which?")) => {
            let mut task = task("input-required");
            task["status"]["message"] =
                json!({"kind": "message", "role": "agent", "parts": text("The red one?")});
            task
        }
        ("message/send", Some("Break.")) => {
            let mut task = task("failed");
            task["status"]["message"] =
                json!({"kind": "message", "role": "agent", "parts": text("the sky fell")});
            task
        }
        ("message/send", Some(said)) => {
            json!({"kind": "message", "role": "agent", "messageId": "m", "contextId": "c-1", "parts": text(&format!("heard {said}"))})
        }
        ("tasks/get", _) => {
            let polled = calls.lock().unwrap().iter().filter(|call| call["method"] == "tasks/get").count();
            let mut task = task(if polled < 2 { "working" } else { "completed" });
            task["history"] =
                json!([{"role": "user", "parts": text("Look.")}, {"role": "agent", "parts": text("a boat")}]);
            task
        }
        other => panic!("{other:?}"),
    };
    json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string()
}

/// Returns the component of a remote agent.
pub fn far_agent(name: &str, url: &str) -> Value {
    let connection =
        part("A2AConnectionConfig", &format!("{name}-way"), json!({"headers": {"x-who": "tests"}}));
    let fields = json!({"agent_url": url, "connection_config": connection, "description": "It looks.",
                        "session_parameters": {"timeout": 20.0, "poll_interval": 0.1, "max_retries": 2}});
    part("A2AAgent", name, fields)
}

/// AGS-43: each message of the user is sent, the context and the task continue, and a task is polled until it ends.
#[tokio::test]
async fn a_remote_agent_holds_the_conversation_with_the_user() {
    for backend in Backend::ALL {
        let (fleet, far) = (Fleet::builder().on(backend).start().await, Far::start().await);
        let job = run(&fleet, far_agent("far", &far.url), json!({})).await;
        assert_eq!(awaiting(&fleet, &job).await["kind"], "input", "{job:#}");
        for (message, reported) in [("Look.", "a boat"), ("Which?", "The red one?"), ("Yes.", "heard Yes.")] {
            let job = answer(&fleet, &job, json!({"user_input": message})).await;
            assert_eq!(awaiting(&fleet, &job).await["prompt"], reported, "{job:#}");
        }
        let sent: Vec<Value> = far
            .messages()
            .iter()
            .map(|message| json!([message["contextId"], message["taskId"], message["role"]]))
            .collect();
        let user = |context: Value, task: Value| json!([context, task, "user"]);
        let none = Value::Null;
        assert_eq!(
            sent,
            [user(none.clone(), none.clone()), user("c-1".into(), none), user("c-1".into(), "t-1".into())]
        );
        let texts: Vec<Value> = said(&fleet, &job).await.into_iter().map(|one| one[1].clone()).collect();
        assert_eq!(texts, ["Look.", "a boat", "Which?", "The red one?", "Yes.", "heard Yes."]);
        fleet.end().await;
    }
}

/// AGS-43: an agent may send it messages, and its failure is the outcome of the message.
#[tokio::test]
async fn a_remote_worker_answers_its_manager() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("send_message", json!({"recipient": "far", "message": "Look."})),
        1 => Reply::call("send_message", json!({"recipient": "far", "message": "Break."})),
        _ => Reply::text("All is done."),
    };
    let (fleet, far) = (Fleet::builder().model(script).start().await, Far::start().await);
    let boss = part(
        "Agent",
        "boss",
        json!({"llm_config": llm_of(&fleet, "boss-llm"), "system_prompt": "You lead."}),
    );
    let team = json!({"group_manager": boss, "workers": [far_agent("far", &far.url)]});
    let job = run(&fleet, part("ManagerWorkers", "team", team), json!({})).await;
    assert_eq!(awaiting(&fleet, &job).await["prompt"], "All is done.", "{job:#}");
    let heard = fleet.models.calls().pop().unwrap().request["messages"].to_string();
    assert!(heard.contains("a boat") && heard.contains("the sky fell"), "{heard}");
    assert_eq!(far.messages()[1]["contextId"], "c-1", "the conversation of the two continues");
    fleet.end().await;
}

/// AGS-43: Turnstone's own agents are remote agents by A2A 1.0, which their card says.
#[tokio::test]
async fn a_remote_agent_with_a_card_is_called_by_its_version() {
    let script = |request: &Value| {
        let said = request["messages"].as_array().unwrap().iter().filter(|one| one["role"] == "user").count();
        Reply::text(format!("answer {said}"))
    };
    let (fleet, other) = (Fleet::builder().start().await, Fleet::builder().model(script).start().await);
    let near = "kind: \"openagentspec:v1/agent\"\nname: near\ndescription: An agent.\nintent: You answer.\nowner: tests\n\
                capabilities: {}\n";
    other.register(near).await;
    let job = run(&fleet, far_agent("far", &format!("{}/a2a/near", other.url)), json!({})).await;
    for reported in ["answer 1", "answer 2"] {
        let job = answer(&fleet, &job, json!({"user_input": "go"})).await;
        assert_eq!(awaiting(&fleet, &job).await["prompt"], reported, "{job:#}");
    }
    fleet.end().await;
    other.end().await;
}

/// AGS-43: an address that the operator does not allow is not asked, and a failure ends a run without a team.
#[tokio::test]
async fn a_remote_agent_that_fails_ends_the_run() {
    let (fleet, far) = (Fleet::builder().start().await, Far::start().await);
    for (url, message, why) in
        [(far.url.as_str(), "Break.", "the sky fell"), ("http://far.example/x", "Look.", "allowed_hosts")]
    {
        let name = register(&fleet, far_agent("far", url)).await;
        let job = json!({"type": "flow.run", "args": [{}, {"role": "user", "content": message}], "meta": {"agent": name}});
        let job = fleet.settled(&fleet.push(&job).await).await;
        assert_eq!(job["state"], "discarded", "{job:#}");
        assert!(job["error"]["message"].to_string().contains(why), "{job:#}");
    }
    assert_eq!(far.messages().len(), 1);
    fleet.end().await;
}
