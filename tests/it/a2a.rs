//! A2A 1.0: agents over JSON-RPC and server-sent events.

use futures::StreamExt;
use serde_json::{Value, json};
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Gate, Reply, model_server, wait};

async fn fleet(backend: Backend, script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Fleet {
    let fleet = Fleet::builder().on(backend).workers(1).model(script).start().await;
    for (name, rest) in [("clerk", ""), ("other", ""), ("asker", "capabilities: {ask-user: {}}\n")] {
        fleet.register(oas(name, rest)).await;
    }
    fleet
}

fn request(fleet: &Fleet, agent: &str, call: &Value) -> reqwest::RequestBuilder {
    client().post(format!("{}/a2a/{agent}", fleet.url)).header("a2a-version", "1.0").json(call)
}

fn client() -> reqwest::Client {
    turnstone_tests::http::client()
}

async fn rpc(fleet: &Fleet, agent: &str, method: &str, params: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let answer = request(fleet, agent, &call).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let answer: Value = answer.json().await.unwrap();
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)), "{answer:#}");
    answer
}

fn said(id: &str, parts: Value, more: &Value) -> Value {
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": parts});
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"message": message})
}

fn text(id: &str, text: &str) -> Value {
    said(id, json!([{"text": text}]), &json!({}))
}

fn code(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    (error["code"].as_i64().unwrap_or_default(), error["data"][0]["reason"].as_str().unwrap_or_default())
}

/// Issue 7, "A2A": the card describes the agent and its address.
#[tokio::test]
async fn every_agent_has_a_card() {
    let fleet = fleet(Backend::Sqlite, |_| Reply::text("done")).await;
    let listed = fleet.get("/a2a").await;
    assert_eq!(listed.as_array().unwrap().len(), 3, "{listed:#}");
    let card = fleet.get(listed[0]["card"].as_str().unwrap()).await;
    assert_eq!(card["supportedInterfaces"][0]["protocolVersion"], "1.0", "{card:#}");
    let url = card["supportedInterfaces"][0]["url"].as_str().unwrap();
    assert_eq!(url, format!("{}/a2a/{}", fleet.url, card["name"].as_str().unwrap()));
    assert!(card["skills"][0]["tags"][0].is_string() && card["description"].is_string(), "{card:#}");
    let (status, _) = fleet.send(reqwest::Method::GET, "/a2a/nobody/.well-known/agent-card.json", "").await;
    assert_eq!(status, 404);
    fleet.end().await;
}

/// Issue 7, "A2A": a message is a task; the same message is the same task; the next one of its context continues it.
#[tokio::test]
async fn messages_are_tasks_and_contexts_are_engagements() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |request| {
            let users = request["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "user");
            Reply::text(format!("heard {}", users.count()))
        })
        .await;
        let first = rpc(&fleet, "clerk", "SendMessage", text("m-1", "hello")).await["result"]["task"].clone();
        assert_eq!(first["status"]["state"], "TASK_STATE_COMPLETED", "{first:#}");
        assert_eq!(first["artifacts"][0]["parts"], json!([{"text": "heard 1"}]));
        assert_eq!(first["history"][0]["messageId"], "m-1");
        let again = rpc(&fleet, "clerk", "SendMessage", text("m-1", "hello")).await;
        assert_eq!(again["result"]["task"]["id"], first["id"], "{again:#}");
        let other = rpc(&fleet, "clerk", "SendMessage", text("m-1", "something else")).await;
        assert_eq!(code(&other), (-32602, "INVALID_PARAMS"), "{other:#}");

        let context = json!({"contextId": first["contextId"]});
        let next = said("m-2", json!([{"text": "and?"}, {"data": {"n": 1}}]), &context);
        let next = rpc(&fleet, "clerk", "SendMessage", next).await["result"]["task"].clone();
        assert_eq!(next["artifacts"][0]["parts"], json!([{"text": "heard 2"}]), "{next:#}");
        assert_eq!(next["contextId"], first["contextId"]);
        assert_ne!(next["id"], first["id"]);
        let foreign =
            rpc(&fleet, "other", "SendMessage", said("m-3", json!([{"text": "?"}]), &context)).await;
        assert_eq!(code(&foreign), (-32602, "INVALID_PARAMS"), "{foreign:#}");

        let got = rpc(&fleet, "clerk", "GetTask", json!({"id": next["id"], "historyLength": 0})).await;
        assert_eq!(got["result"]["artifacts"], next["artifacts"]);
        assert!(got["result"]["history"].is_null(), "{got:#}");
        fleet.end().await;
    }
}

/// Issue 7, "A2A": a message of the task answers the agent's question to its user, as text or as data.
#[tokio::test]
async fn a_task_that_asks_is_answered_once() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |request| match model_server::outcomes(request) {
            0 => Reply::call("ask-user", json!({"request_keys": {"city": "Which city?"}})),
            _ => Reply::text(request["messages"].as_array().unwrap().last().unwrap()["content"].to_string()),
        })
        .await;
        let task = rpc(&fleet, "asker", "SendMessage", text("m-1", "go")).await["result"]["task"].clone();
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task:#}");
        let keys = &task["status"]["message"]["parts"][1]["data"]["request_keys"];
        assert_eq!(*keys, json!({"city": "Which city?"}));
        let named = json!({"taskId": task["id"], "contextId": task["contextId"]});
        let wrong = said("m-2", json!([{"data": {"town": "Oslo"}}]), &named);
        assert_eq!(code(&rpc(&fleet, "asker", "SendMessage", wrong).await).0, -32602);
        let answered =
            rpc(&fleet, "asker", "SendMessage", said("m-3", json!([{"text": "Oslo"}]), &named)).await;
        let done = &answered["result"]["task"];
        assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{answered:#}");
        assert!(done["artifacts"][0]["parts"][0]["text"].as_str().unwrap().contains("Oslo"), "{done:#}");
        let late = rpc(&fleet, "asker", "SendMessage", said("m-4", json!([{"text": "Rome"}]), &named)).await;
        assert_eq!(code(&late), (-32004, "UNSUPPORTED_OPERATION"), "{late:#}");
        fleet.end().await;
    }
}

/// Issue 7, "A2A" and "Cancel": a task is canceled once, and only by a client that may see it.
#[tokio::test]
async fn a_task_is_canceled_once() {
    for backend in Backend::ALL {
        let gate = Gate::default();
        let held = gate.clone();
        let fleet = fleet(backend, move |_| Reply::text("late").behind(&held)).await;
        let mut params = text("m-1", "go");
        params["configuration"] = json!({"returnImmediately": true});
        let task = rpc(&fleet, "clerk", "SendMessage", params).await["result"]["task"].clone();
        fleet.models.seen(1).await;
        let id = json!({"id": task["id"]});
        assert_eq!(code(&rpc(&fleet, "other", "CancelTask", id.clone()).await), (-32001, "TASK_NOT_FOUND"));
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "CancelTask", "params": id});
        let foreign = request(&fleet, "clerk", &call).header("x-ojs-tenant", "acme").send().await.unwrap();
        assert_eq!(code(&foreign.json().await.unwrap()), (-32001, "TASK_NOT_FOUND"));
        let canceled = rpc(&fleet, "clerk", "CancelTask", id.clone()).await;
        assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{canceled:#}");
        assert_eq!(
            code(&rpc(&fleet, "clerk", "CancelTask", id.clone()).await),
            (-32002, "TASK_NOT_CANCELABLE")
        );
        assert_eq!(
            code(&rpc(&fleet, "clerk", "SubscribeToTask", id).await),
            (-32004, "UNSUPPORTED_OPERATION")
        );
        gate.open();
        fleet.end().await;
    }
}

/// Issue 7, "A2A": a stream has the task, its updates, deltas of the answer, the answer, and the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_has_the_answer_while_it_is_generated() {
    for backend in Backend::ALL {
        let gate = Gate::default();
        let heard = Gate::default();
        let (held, listening) = (gate.clone(), heard.clone());
        let pieces = vec!["one ".to_owned(), "two".to_owned()];
        // Deltas before the subscription are lost.
        let spoken = move |_: &Value| Reply::Spoken(pieces.clone(), held.clone()).behind(&listening);
        let fleet = fleet(backend, spoken).await;
        let call = json!({"jsonrpc": "2.0", "id": "s", "method": "SendStreamingMessage", "params": text("m-1", "go")});
        let answer = request(&fleet, "clerk", &call).send().await.unwrap();
        assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
        let mut stream = Box::pin(eventsource_stream::Eventsource::eventsource(answer.bytes_stream()));
        let mut reported = Vec::new();
        while let Some(event) = wait::output("an event of the task", stream.next()).await {
            let event: Value = serde_json::from_str(&event.unwrap().data).unwrap();
            assert_eq!(event["id"], "s");
            heard.open();
            if event["result"]["artifactUpdate"].is_object() {
                gate.open();
            }
            reported.push(event["result"].clone());
        }
        assert!(reported[0]["task"]["id"].is_string(), "{reported:#?}");
        let states: Vec<_> =
            reported.iter().filter_map(|t| t["statusUpdate"]["status"]["state"].as_str()).collect();
        assert_eq!(states.last(), Some(&"TASK_STATE_COMPLETED"), "{reported:#?}");
        assert_eq!(states.iter().filter(|state| **state == "TASK_STATE_COMPLETED").count(), 1);
        let updates: Vec<_> = reported
            .iter()
            .filter(|t| t["artifactUpdate"].is_object())
            .map(|t| &t["artifactUpdate"])
            .collect();
        assert_eq!(updates[0]["append"], false, "{reported:#?}");
        let last = updates.last().unwrap();
        assert_eq!(
            (&last["lastChunk"], &last["artifact"]["parts"][0]["text"]),
            (&json!(true), &json!("one two"))
        );
        assert!(reported.last().unwrap()["statusUpdate"].is_object(), "the end is the last");
        fleet.end().await;
    }
}

/// Issue 7, "Bad input", for A2A: the protocol's own error, and an unchanged store.
#[tokio::test]
async fn an_invalid_call_has_the_protocols_error() {
    let fleet = fleet(Backend::Sqlite, |_| Reply::text("done")).await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": text("m-1", "go")});
    let unversioned = client().post(format!("{}/a2a/clerk", fleet.url)).json(&call).send().await.unwrap();
    assert_eq!(code(&unversioned.json().await.unwrap()), (-32009, "VERSION_NOT_SUPPORTED"));
    let (_, unread) = fleet.send(reqwest::Method::POST, "/a2a/clerk", "{").await;
    assert_eq!((code(&unread), &unread["id"]), ((-32700, "PARSE_ERROR"), &Value::Null));
    for (body, wanted) in [
        (json!({"jsonrpc": "2.0", "method": "GetTask"}), (-32600, "INVALID_REQUEST")),
        (json!({"jsonrpc": "1.0", "id": 1, "method": "GetTask"}), (-32600, "INVALID_REQUEST")),
        (json!({"jsonrpc": "2.0", "id": 1}), (-32600, "INVALID_REQUEST")),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": []}), (-32602, "INVALID_PARAMS")),
    ] {
        let answer: Value = request(&fleet, "clerk", &body).send().await.unwrap().json().await.unwrap();
        assert_eq!(code(&answer), wanted, "{body}");
    }
    let mut push = text("m-1", "go");
    push["configuration"] = json!({"taskPushNotificationConfig": {"url": "https://example.org"}});
    let mut modes = text("m-1", "go");
    modes["configuration"] = json!({"acceptedOutputModes": ["image/png"]});
    for (method, params, wanted) in [
        ("message/send", text("m-1", "go"), (-32601, "METHOD_NOT_FOUND")),
        ("GetTask", json!({}), (-32602, "INVALID_PARAMS")),
        ("GetTask", json!({"id": "nope"}), (-32001, "TASK_NOT_FOUND")),
        ("GetTask", json!({"id": "nope", "historyLength": -1}), (-32001, "TASK_NOT_FOUND")),
        ("SendMessage", json!({}), (-32602, "INVALID_PARAMS")),
        ("SendMessage", text("", "go"), (-32602, "INVALID_PARAMS")),
        ("SendMessage", said("m", json!([]), &json!({})), (-32602, "INVALID_PARAMS")),
        (
            "SendMessage",
            said("m", json!([{"text": "a"}]), &json!({"contextId": "mine"})),
            (-32602, "INVALID_PARAMS"),
        ),
        (
            "SendMessage",
            said("m", json!([{"text": "a"}]), &json!({"taskId": "mine"})),
            (-32001, "TASK_NOT_FOUND"),
        ),
        ("SendMessage", push, (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED")),
        ("SendMessage", modes, (-32005, "CONTENT_TYPE_NOT_SUPPORTED")),
        ("CreateTaskPushNotificationConfig", json!({}), (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED")),
        ("GetExtendedAgentCard", json!({}), (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")),
    ] {
        let answer = rpc(&fleet, "clerk", method, params).await;
        assert_eq!(code(&answer), wanted, "{method}: {answer:#}");
    }
    let (status, _) = fleet.send(reqwest::Method::POST, "/a2a/nobody", call.to_string()).await;
    assert_eq!(status, 404);
    assert_eq!(fleet.number("SELECT count(*) FROM jobs").await, 0);
    fleet.end().await;
}

/// Issue 7, "A2A": tasks are listed by their last change, newest first, in pages, by context, state and time; a
/// tenant sees its own.
#[tokio::test]
async fn tasks_are_listed_by_their_filters() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |request| match model_server::outcomes(request) {
            0 if request["tools"].is_array() => Reply::call("ask-user", json!({"question": "Which city?"})),
            _ => Reply::text("done"),
        })
        .await;
        let mut tasks = Vec::new();
        for id in ["m-1", "m-2", "m-3"] {
            let task = rpc(&fleet, "clerk", "SendMessage", text(id, "go")).await["result"]["task"].clone();
            tasks.push(task);
        }
        rpc(&fleet, "asker", "SendMessage", text("m-4", "go")).await;
        let list = async |agent: &str, params: Value| {
            rpc(&fleet, agent, "ListTasks", params).await["result"].clone()
        };
        let ids = |page: &Value| -> Vec<String> {
            page["tasks"]
                .as_array()
                .unwrap()
                .iter()
                .map(|task| task["id"].as_str().unwrap().to_owned())
                .collect()
        };
        let all = list("clerk", json!({})).await;
        assert_eq!(
            (&all["totalSize"], &all["pageSize"], &all["nextPageToken"]),
            (&json!(3), &json!(50), &json!(""))
        );
        let listed = ids(&all);
        for task in &tasks {
            assert!(listed.contains(&task["id"].as_str().unwrap().to_owned()), "{all:#}");
        }
        assert!(all["tasks"][0]["artifacts"].is_null() && all["tasks"][0]["history"].is_null(), "{all:#}");

        let first = list("clerk", json!({"pageSize": 2, "includeArtifacts": true, "historyLength": 1})).await;
        assert!(
            first["tasks"][0]["artifacts"].is_array() && first["tasks"][0]["history"].is_array(),
            "{first:#}"
        );
        let rest = list("clerk", json!({"pageSize": 2, "pageToken": first["nextPageToken"]})).await;
        assert_eq!(
            ([ids(&first), ids(&rest)].concat(), &rest["nextPageToken"]),
            (listed.clone(), &json!(""))
        );

        let one = list("clerk", json!({"contextId": tasks[1]["contextId"]})).await;
        assert_eq!(ids(&one), [tasks[1]["id"].as_str().unwrap()]);
        for (agent, state, count) in [
            ("clerk", "TASK_STATE_COMPLETED", 3),
            ("clerk", "TASK_STATE_WORKING", 0),
            ("asker", "TASK_STATE_INPUT_REQUIRED", 1),
            ("asker", "TASK_STATE_WORKING", 0),
            ("asker", "TASK_STATE_REJECTED", 0),
        ] {
            assert_eq!(ids(&list(agent, json!({"status": state})).await).len(), count, "{agent} {state}");
        }
        for (after, count) in [("2001-01-01T00:00:00Z", 3), ("2999-01-01T00:00:00Z", 0)] {
            assert_eq!(
                ids(&list("clerk", json!({"statusTimestampAfter": after})).await).len(),
                count,
                "{after}"
            );
        }
        other_lists(&fleet).await;
        fleet.end().await;
    }
}

/// Checks another tenant's list of these tasks, and unknown parameters of a list.
async fn other_lists(fleet: &Fleet) {
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "ListTasks", "params": {}});
    let foreign = request(fleet, "clerk", &call).header("x-ojs-tenant", "acme").send().await.unwrap();
    let foreign: Value = foreign.json().await.unwrap();
    assert_eq!(foreign["result"]["totalSize"], 0, "{foreign:#}");
    for wrong in [
        json!({"pageSize": 0}),
        json!({"status": "DONE"}),
        json!({"pageToken": "x"}),
        json!({"statusTimestampAfter": "now"}),
        json!({"includeArtifacts": "yes"}),
    ] {
        let answer = rpc(fleet, "clerk", "ListTasks", wrong.clone()).await;
        assert_eq!(code(&answer), (-32602, "INVALID_PARAMS"), "{wrong}");
    }
}

/// Issue 7, "A2A" and "Bad input": a repeated answer does not answer the next question.
#[tokio::test]
async fn a_repeated_message_answers_one_question() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |request| match model_server::outcomes(request) {
            0 => Reply::call("ask-user", json!({"question": "Which city?"})),
            1 => Reply::call("ask-user", json!({"question": "Delete all?"})),
            _ => Reply::text("done"),
        })
        .await;
        let task = rpc(&fleet, "asker", "SendMessage", text("m-1", "go")).await["result"]["task"].clone();
        let named = json!({"taskId": task["id"], "contextId": task["contextId"]});
        let answer = said("m-2", json!([{"text": "yes"}]), &named);
        for _ in 0..2 {
            let requested = rpc(&fleet, "asker", "SendMessage", answer.clone()).await;
            let status = &requested["result"]["task"]["status"];
            assert_eq!(status["state"], "TASK_STATE_INPUT_REQUIRED", "{requested:#}");
            assert_eq!(status["message"]["parts"][0]["text"], "Delete all?", "{requested:#}");
        }
        let no = said("m-3", json!([{"text": "no"}]), &named);
        for _ in 0..2 {
            let done = rpc(&fleet, "asker", "SendMessage", no.clone()).await;
            assert_eq!(done["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done:#}");
        }
        fleet.end().await;
    }
}

/// Issue 7, "Human in the loop": a delegate's question reaches the client of the root task.
#[tokio::test]
async fn a_delegates_question_reaches_the_client() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |request| {
            let leads =
                request["messages"][0]["content"].as_str().unwrap_or_default().contains("You are lead");
            match (leads, model_server::outcomes(request)) {
                (true, 0) => Reply::call("asker", json!({"input": "a trip"})),
                (false, 0) => Reply::call("ask-user", json!({"question": "Which city?"})),
                (true, _) => Reply::text(
                    request["messages"].as_array().unwrap().last().unwrap()["content"].to_string(),
                ),
                (false, _) => Reply::text("to Oslo"),
            }
        })
        .await;
        let lead = oas("lead", "capabilities: {asker: {}}\n");
        fleet.register(lead).await;
        let task = rpc(&fleet, "lead", "SendMessage", text("m-1", "go")).await["result"]["task"].clone();
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task:#}");
        assert_eq!(task["status"]["message"]["parts"][0]["text"], "Which city?");
        let named = json!({"taskId": task["id"]});
        for _ in 0..2 {
            let answer = said("m-2", json!([{"text": "Oslo"}]), &named);
            let done = rpc(&fleet, "lead", "SendMessage", answer).await["result"]["task"].clone();
            assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done:#}");
            assert!(
                done["artifacts"][0]["parts"][0]["text"].as_str().unwrap().contains("to Oslo"),
                "{done:#}"
            );
        }
        fleet.end().await;
    }
}

/// Tasks of a deleted agent continue: they can be read, listed, answered and canceled. New tasks are refused.
#[tokio::test]
async fn tasks_of_a_deleted_agent_continue() {
    for backend in Backend::ALL {
        let fleet = fleet(backend, |request| match model_server::outcomes(request) {
            0 => Reply::call("ask-user", json!({"question": "Which city?"})),
            _ => Reply::text("done"),
        })
        .await;
        let mut tasks = Vec::new();
        for id in ["m-1", "m-2"] {
            tasks.push(rpc(&fleet, "asker", "SendMessage", text(id, "go")).await["result"]["task"].clone());
        }
        let (status, body) =
            fleet.send(reqwest::Method::DELETE, "/agents/asker?allow_unresolved=1", "").await;
        assert!(status.is_success(), "{body:#}");
        let got = rpc(&fleet, "asker", "GetTask", json!({"id": tasks[0]["id"]})).await;
        assert_eq!(got["result"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{got:#}");
        assert_eq!(rpc(&fleet, "asker", "ListTasks", json!({})).await["result"]["totalSize"], 2);
        let again = rpc(&fleet, "asker", "SendMessage", text("m-1", "go")).await;
        assert_eq!(again["result"]["task"]["id"], tasks[0]["id"], "{again:#}");
        let canceled = rpc(&fleet, "asker", "CancelTask", json!({"id": tasks[1]["id"]})).await;
        assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{canceled:#}");
        let named = json!({"taskId": tasks[0]["id"]});
        let done = rpc(&fleet, "asker", "SendMessage", said("m-3", json!([{"text": "Oslo"}]), &named)).await;
        assert_eq!(done["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done:#}");
        let context = json!({"contextId": tasks[0]["contextId"]});
        for new in [text("m-4", "go"), said("m-5", json!([{"text": "go"}]), &context)] {
            let refused = rpc(&fleet, "asker", "SendMessage", new).await;
            assert_eq!(code(&refused), (-32004, "UNSUPPORTED_OPERATION"), "{refused:#}");
        }
        fleet.end().await;
    }
}

/// A message belongs to the trace of its sender, whether it begins a context or continues one, and the request's span
/// keeps its name.
#[tokio::test]
async fn a_message_keeps_its_trace() {
    let fleet = fleet(Backend::Sqlite, |_| Reply::text("done")).await;
    let send = async |params: Value, number: u8| {
        let trace = format!("00-{}-00f067aa0ba902b{number}-01", "4bf92f3577b34da6a3ce929d0e0e4736");
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": params});
        let sent = request(&fleet, "clerk", &call).header("traceparent", &trace).header("tracestate", "v=1");
        let sent = sent.header("baggage", "a=b").header("x-request-id", format!("http-{number}"));
        let reported: Value = sent.send().await.unwrap().json().await.unwrap();
        let task = reported["result"]["task"].clone();
        let meta = fleet.job(task["id"].as_str().unwrap()).await["meta"].clone();
        assert_eq!(
            json!([meta["traceparent"], meta["tracestate"], meta["baggage"], meta["request_id"]]),
            json!([trace, "v=1", "a=b", format!("http-{number}")]),
            "{meta:#}"
        );
        task
    };
    let first = send(text("m-1", "hello"), 1).await;
    let context = json!({"contextId": first["contextId"]});
    let second = send(said("m-2", json!([{"text": "and?"}]), &context), 2).await;
    assert_eq!(second["contextId"], first["contextId"]);
    fleet.end().await;
}
