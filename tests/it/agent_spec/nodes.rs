//! One test for each kind of node.

use super::{end, fills, flow, job, llm, part, property, register, result, run, start, text, then, tool};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::model_server::Gate;
use turnstone_tests::{Backend, Fleet, Reply};

fn number(title: &str) -> Value {
    property(title, "integer")
}

/// A flow that passes its inputs through one node.
fn around(node: Value, inputs: &[Value], outputs: &[Value]) -> Value {
    let id = node["id"].as_str().unwrap().to_owned();
    let nodes = [start("start", inputs), node, end("end", outputs)];
    flow("around", &nodes, &[then("start", &id), then(&id, "end")], &[])
}

/// A subflow whose only node is the tool `search`; its output `tool` is the name of the tool.
fn searching(id: &str, input: Value) -> Value {
    let node = format!("{id}-search");
    let outputs = [text("tool"), property("echo", "object")];
    let (first, last) = (format!("{id}-start"), format!("{id}-end"));
    let nodes = [
        start(&first, std::slice::from_ref(&input)),
        tool(&node, "search", std::slice::from_ref(&input), &outputs),
        end(&last, &outputs),
    ];
    flow(id, &nodes, &[then(&first, &node), then(&node, &last)], &[])
}

/// AGS-10, AGS-11, AGS-12: start, prompt, end.
#[tokio::test]
async fn llm_node_returns_the_text_of_the_model() {
    let fleet = Fleet::builder().model(|_| Reply::text("Boats float.")).start().await;
    let node =
        part("LlmNode", "gen", json!({"llm_config": llm(&fleet), "prompt_template": "About {{topic}}:"}));
    let found =
        result(&fleet, around(node, &[text("topic")], &[text("generated_text")]), json!({"topic": "boats"}))
            .await;
    assert_eq!(found["outputs"], json!({"generated_text": "Boats float."}));
    assert_eq!((&found["end_node"], &found["branch"]), (&json!("end"), &json!("next")));
    let requested = &fleet.models.calls()[0].request;
    assert_eq!(requested["messages"], json!([{"role": "user", "content": "About boats:"}]));
    fleet.end().await;
}

/// AGS-13: several outputs are JSON.
#[tokio::test]
async fn llm_node_reads_several_outputs_from_json() {
    let fleet =
        Fleet::builder().model(|_| Reply::text("```json\n{\"hp\": 1400, \"fast\": 1}\n```")).start().await;
    let outputs = [number("hp"), property("fast", "boolean")];
    let fields = json!({"llm_config": llm(&fleet), "prompt_template": "{{q}}", "outputs": outputs});
    let found =
        result(&fleet, around(part("LlmNode", "gen", fields), &[text("q")], &outputs), json!({"q": "?"}))
            .await;
    assert_eq!(found["outputs"], json!({"hp": 1400, "fast": true}));
    fleet.end().await;
}

/// AGS-14: a value, or the default.
#[tokio::test]
async fn branching_node_takes_the_branch_of_its_value_or_the_default() {
    let fleet = Fleet::builder().start().await;
    let branching =
        part("BranchingNode", "pick", json!({"inputs": [text("k")], "mapping": {"y": "go", "yes": "go"}}));
    let nodes =
        [start("start", &[text("k")]), branching, end("went", &[text("k")]), end("stayed", &[text("k")])];
    let control = [then("start", "pick"), then("pick:go", "went"), then("pick:default", "stayed")];
    let found = flow("branching", &nodes, &control, &[]);
    for (k, ended) in [("yes", "went"), ("Yes", "stayed")] {
        assert_eq!(result(&fleet, found.clone(), json!({"k": k})).await["end_node"], ended);
    }
    fleet.end().await;
}

/// AGS-15: a tool of the server.
#[tokio::test]
async fn tool_node_calls_a_tool_of_the_server() {
    let fleet = Fleet::builder().start().await;
    let outputs = [text("tool"), property("echo", "object")];
    let node = tool("call", "search", &[number("n")], &outputs);
    let found = result(&fleet, around(node, &[property("n", "number")], &outputs), json!({"n": 2.9})).await;
    assert_eq!(found["outputs"], json!({"tool": "search", "echo": {"n": 2}}), "the number is cast");
    assert_eq!(fleet.tools.calls_of("search"), 1);
    fleet.end().await;
}

/// AGS-11, AGS-21: the branch of the end, and what is said.
#[tokio::test]
async fn flow_node_shares_the_conversation_and_takes_the_branch_of_its_end() {
    let fleet = Fleet::builder().start().await;
    let say = |id: &str, message: &str| part("OutputMessageNode", id, json!({"message": message}));
    let mut inner_end = end("in-end", &[]);
    inner_end["branch_name"] = "well".into();
    let inner = flow(
        "inner",
        &[start("in-start", &[text("who")]), say("in-say", "hi {{who}}"), inner_end],
        &[then("in-start", "in-say"), then("in-say", "in-end")],
        &[],
    );
    let sub = part("FlowNode", "sub", json!({"subflow": inner}));
    let nodes = [
        start("start", &[text("who")]),
        say("before", "before"),
        sub,
        say("after", "after"),
        end("end", &[]),
    ];
    let control =
        [then("start", "before"), then("before", "sub"), then("sub:well", "after"), then("after", "end")];
    let job = run(&fleet, flow("outer", &nodes, &control, &[]), json!({"who": "Ann"})).await;
    let engagement = fleet.engagement_of(job["id"].as_str().unwrap()).await;
    let said = fleet.get(&format!("/engagements/{engagement}/messages")).await;
    let said: Vec<&Value> = said["messages"].as_array().unwrap().iter().map(|one| &one["content"]).collect();
    assert_eq!(said, ["before", "hi Ann", "after"]);
    fleet.end().await;
}

/// AGS-16, AGS-22: lists, scalars, reducers.
#[tokio::test]
async fn map_node_zips_lists_repeats_scalars_and_reduces() {
    let fleet = Fleet::builder().start().await;
    let inner = flow(
        "inner",
        &[start("in-start", &[number("x"), number("k")]), end("in-end", &[number("x"), number("k")])],
        &[then("in-start", "in-end")],
        &[],
    );
    for class in ["MapNode", "ParallelMapNode"] {
        let list = |title: &str| json!({"title": title, "type": "array", "items": {"type": "integer"}});
        let map = part(class, "map", json!({"subflow": inner, "reducers": {"x": "append", "k": "sum"}}));
        let outputs = [list("collected_x"), number("collected_k")];
        let nodes = [start("start", &[list("xs"), number("k")]), map, end("end", &outputs)];
        let data = [
            fills("start.xs", "map.iterated_x"),
            fills("start.k", "map.iterated_k"),
            fills("map.collected_x", "end.collected_x"),
            fills("map.collected_k", "end.collected_k"),
        ];
        let control = [then("start", "map"), then("map", "end")];
        let found = flow("mapping", &nodes, &control, &data);
        let outputs =
            result(&fleet, found.clone(), json!({"xs": [3, 1, 2], "k": 10})).await["outputs"].clone();
        assert_eq!(outputs, json!({"collected_x": [3, 1, 2], "collected_k": 30}), "{class}");
        let empty = result(&fleet, found, json!({"xs": [], "k": 10})).await["outputs"].clone();
        assert_eq!(empty, json!({"collected_x": [], "collected_k": 0}), "{class}");
    }
    fleet.end().await;
}

/// A flow that asks for more iterations than its tree may have jobs fails before the first of them, in one job or in many.
#[tokio::test]
async fn a_flow_with_too_many_iterations_begins_none() {
    let list = json!({"title": "iterated_q", "type": "array", "items": {"type": "string"}});
    for (backend, class) in
        Backend::ALL.into_iter().flat_map(|one| [(one, "MapNode"), (one, "ParallelMapNode")])
    {
        let fleet = Fleet::builder().on(backend).start().await;
        let map = part(class, "map", json!({"subflow": searching("each", text("q"))}));
        let nodes = [start("start", std::slice::from_ref(&list)), map, end("end", &[])];
        let found = flow("many", &nodes, &[then("start", "map"), then("map", "end")], &[]);
        let done = run(&fleet, found, json!({"iterated_q": vec!["x"; 1_001]})).await;
        assert_eq!(done["state"], "discarded", "{class}: {done:#}");
        assert_eq!(done["error"]["code"], "AGENT_MAX_TREE_JOBS", "{class}: {done:#}");
        let message = done["error"]["message"].as_str().unwrap();
        assert!(message.contains("1001 more") && message.contains("at most 1000"), "{message}");
        assert_eq!(fleet.tools.calls().len(), 0, "{class}");
        assert_eq!(fleet.number("SELECT count(*) FROM jobs").await, 1, "{class}");
        fleet.end().await;
    }
}

/// AGS-17: outputs are joined.
#[tokio::test]
async fn parallel_flow_node_joins_the_outputs_of_its_flows() {
    let fleet = Fleet::builder().start().await;
    let pass = |id: &str, input: Value| {
        let (first, last) = (format!("{id}-start"), format!("{id}-end"));
        let one = std::slice::from_ref(&input);
        flow(id, &[start(&first, one), end(&last, one)], &[then(&first, &last)], &[])
    };
    let both = part(
        "ParallelFlowNode",
        "both",
        json!({"subflows": [pass("one", number("x")), pass("two", text("w"))]}),
    );
    let io = [number("x"), text("w")];
    let found = result(&fleet, around(both, &io, &io), json!({"x": 4, "w": "n"})).await;
    assert_eq!(found["outputs"], json!({"x": 4, "w": "n"}));
    fleet.end().await;
}

/// AGS-16, AGS-17: the flows of parallel nodes run at once, as jobs of their own; outputs are joined in order.
#[tokio::test]
async fn flows_of_a_parallel_node_run_at_once_and_are_joined_in_order() {
    for backend in Backend::ALL {
        let gate = Gate::default();
        let held = gate.clone();
        let script = move |request: &Value| {
            let requested = request["messages"][0]["content"].as_str().unwrap_or_default();
            Reply::text(format!("seen {requested}")).behind(&held)
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let look = |id: &str, prompt: &str, io: &[Value]| {
            let mut model = llm(&fleet);
            model["id"] = format!("{id}-llm").into();
            let output = text(&format!("{id}_seen"));
            let node = part(
                "LlmNode",
                &format!("{id}-look"),
                json!({"llm_config": model, "prompt_template": prompt, "outputs": [output]}),
            );
            let (first, last) = (format!("{id}-start"), format!("{id}-end"));
            let nodes = [start(&first, io), node, end(&last, &[output])];
            flow(id, &nodes, &[then(&first, &format!("{id}-look")), then(&format!("{id}-look"), &last)], &[])
        };
        let list = |title: &str| json!({"title": title, "type": "array", "items": {"type": "string"}});
        let both = json!({"subflows": [look("one", "first", &[]), look("two", "second", &[])]});
        let nodes = [
            start("start", &[list("iterated_q")]),
            part("ParallelMapNode", "map", json!({"subflow": look("each", "{{q}}", &[text("q")])})),
            part("ParallelFlowNode", "both", both),
            end("end", &[list("collected_each_seen"), text("one_seen"), text("two_seen")]),
        ];
        let control = [then("start", "map"), then("map", "both"), then("both", "end")];
        let name = register(&fleet, flow("parallel", &nodes, &control, &[])).await;
        let id = fleet.push(&job(&name, &json!({"iterated_q": ["a", "b", "c", "d"]}))).await;
        fleet.models.seen(4).await;
        assert!(fleet.job(&id).await["state"] == "pending", "it waits for its flows and holds no slot");
        gate.open();
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        let expected = json!({"collected_each_seen": ["seen a", "seen b", "seen c", "seen d"],
                              "one_seen": "seen first", "two_seen": "seen second"});
        assert_eq!(done["result"]["outputs"], expected, "{done:#}");
        assert_eq!(fleet.models.count(), 6);
        let engagement = fleet.engagement_of(&id).await;
        let shown = fleet.get(&format!("/engagements/{engagement}")).await;
        assert_eq!(shown["children"].as_array().map(Vec::len), Some(6), "{shown:#}");
        fleet.end().await;
    }
}

/// AGS-17, AGS-18: the failure of a flow is that of its node, which a catch around it takes.
#[tokio::test]
async fn a_failed_flow_of_a_parallel_node_fails_the_node() {
    let fleet = Fleet::builder().start().await;
    let call = |id: &str, name: &str| {
        let (first, last) = (format!("{id}-start"), format!("{id}-end"));
        let nodes = [start(&first, &[]), tool(&format!("{id}-call"), name, &[], &[]), end(&last, &[])];
        flow(id, &nodes, &[then(&first, &format!("{id}-call")), then(&format!("{id}-call"), &last)], &[])
    };
    let both = part(
        "ParallelFlowNode",
        "both",
        json!({"subflows": [call("good", "search"), call("bad", "broken")]}),
    );
    let job = json!({"type": "flow.run", "args": [{}], "meta": {"agent": register(&fleet, around(both, &[], &[])).await}});
    let id = fleet.push(&job).await;
    let ended = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    let message = ended["error"]["message"].as_str().unwrap_or_default();
    assert!(ended["state"] == "discarded" && message.contains("the flow `bad` failed"), "{ended:#}");
    assert_eq!(fleet.tools.calls_of("search"), 1);
    fleet.end().await;
}

/// AGS-19: members of the response.
#[tokio::test]
async fn api_node_reads_members_of_the_answer() {
    let fleet = Fleet::builder().start().await;
    let outputs = [text("tool"), property("echo", "object"), number("http_status_code")];
    let fields = json!({"url": format!("{}/{{{{path}}}}", fleet.tools.url), "http_method": "POST",
                        "data": {"deep": ["{{q}}", 1]}, "headers": {"X-Of": "{{q}}"}, "outputs": outputs});
    let node = part("ApiNode", "api", fields);
    let found = around(node, &[text("path"), text("q")], &outputs);
    let found = result(&fleet, found, json!({"path": "orders", "q": "a"})).await;
    assert_eq!(
        found["outputs"],
        json!({"tool": "orders", "echo": {"deep": ["a", 1]}, "http_status_code": 200})
    );
    assert_eq!(fleet.tools.calls()[0].headers["x-of"], "a");
    fleet.end().await;
}

/// AGS-32, AGS-42: the response is a text, and a bad status a failure.
#[tokio::test]
async fn remote_tool_returns_the_text_of_the_answer_and_fails_with_its_status() {
    let fleet = Fleet::builder().start().await;
    let io = [text("resp")];
    let fields = json!({"url": format!("{}/{{{{path}}}}", fleet.tools.url), "http_method": "POST", "data": {"a": 1}, "outputs": io});
    let node = part("ToolNode", "remote", json!({"tool": part("RemoteTool", "rt", fields)}));
    let found = around(node, &[text("path")], &io);
    let echoed = result(&fleet, found.clone(), json!({"path": "x"})).await["outputs"]["resp"].clone();
    assert!(echoed.as_str().unwrap().contains("\"tool\":\"x\""), "{echoed}");
    let job = run(&fleet, found, json!({"path": "broken"})).await;
    assert_eq!(job["state"], "discarded", "{job:#}");
    assert!(job["error"]["message"].as_str().unwrap().contains("status 500"), "{job:#}");
    fleet.end().await;
}

/// AGS-18: defaults, and a branch of its own.
#[tokio::test]
async fn catch_exception_node_takes_its_own_branch_with_defaults() {
    let fleet = Fleet::builder().start().await;
    let outputs = [text("tool"), property("echo", "object")];
    let inner = |name: &str| {
        let nodes = [
            start("in-start", &[number("n")]),
            tool("in-call", name, &[number("n")], &outputs),
            end("in-end", &outputs[..1]),
        ];
        flow("inner", &nodes, &[then("in-start", "in-call"), then("in-call", "in-end")], &[])
    };
    let info = json!({"title": "caught_exception_info", "anyOf": [{"type": "string"}, {"type": "null"}], "default": null});
    for (name, ended, value) in [("broken", "caught", "none"), ("search", "well", "search")] {
        let with_default = json!({"title": "tool", "type": "string", "default": "none"});
        let fields = json!({"subflow": inner(name), "outputs": [with_default, info]});
        let io = [text("tool"), info.clone()];
        let nodes = [
            start("start", &[number("n")]),
            part("CatchExceptionNode", "catch", fields),
            end("well", &io),
            end("caught", &io),
        ];
        let control =
            [then("start", "catch"), then("catch", "well"), then("catch:caught_exception_branch", "caught")];
        let found = result(&fleet, flow("catching", &nodes, &control, &[]), json!({"n": 1})).await;
        assert_eq!(
            (&found["end_node"], &found["outputs"]["tool"]),
            (&json!(ended), &json!(value)),
            "{found:#}"
        );
        assert_eq!(found["outputs"]["caught_exception_info"].is_string(), ended == "caught", "{found:#}");
    }
    fleet.end().await;
}

/// AGS-18: a model that refuses.
#[tokio::test]
async fn catch_exception_node_takes_a_model_that_refuses() {
    let fleet = Fleet::builder().model(|_| Reply::Status(401)).start().await;
    let node = part("LlmNode", "in-gen", json!({"llm_config": llm(&fleet), "prompt_template": "go"}));
    let nodes = [start("in-start", &[]), node, end("in-end", &[text("generated_text")])];
    let inner = flow("inner", &nodes, &[then("in-start", "in-gen"), then("in-gen", "in-end")], &[]);
    let info = json!({"title": "caught_exception_info", "anyOf": [{"type": "string"}, {"type": "null"}], "default": null});
    let with_default = json!({"title": "generated_text", "type": "string", "default": "none"});
    let fields = json!({"subflow": inner, "outputs": [with_default, info]});
    let nodes = [
        start("start", &[]),
        part("CatchExceptionNode", "catch", fields),
        end("well", &[]),
        end("caught", std::slice::from_ref(&info)),
    ];
    let control =
        [then("start", "catch"), then("catch", "well"), then("catch:caught_exception_branch", "caught")];
    let mut found = flow("catching", &nodes, &control, &[]);
    found["outputs"] = json!([info]);
    let job = run(&fleet, found, json!({})).await;
    assert_eq!(job["result"]["end_node"], "caught", "{job:#}");
    assert_eq!(fleet.models.count(), 1);
    assert_eq!(fleet.number("SELECT CAST(coalesce(sum(reserved), 0) AS BIGINT) FROM totals").await, 0);
    fleet.end().await;
}

#[tokio::test]
async fn a_map_of_tools_calls_each_item_once() {
    let fleet = Fleet::builder().start().await;
    let list = |title: &str| json!({"title": title, "type": "array", "items": {"type": "string"}});
    let map = part(
        "MapNode",
        "map",
        json!({"subflow": searching("each", text("q")), "reducers": {"tool": "append"}}),
    );
    let nodes = [start("start", &[list("qs")]), map, end("end", &[list("collected_tool")])];
    let data = [fills("start.qs", "map.iterated_q"), fills("map.collected_tool", "end.collected_tool")];
    let found = flow("searches", &nodes, &[then("start", "map"), then("map", "end")], &data);
    register(&fleet, {
        let mut named = found.clone();
        named["agentspec_version"] = "26.2.0".into();
        named
    })
    .await;
    let outputs = result(&fleet, found, json!({"qs": ["a", "b", "c"]})).await["outputs"].clone();
    assert_eq!(outputs["collected_tool"], json!(["search", "search", "search"]));
    let requested: Vec<Value> = fleet.tools.calls().into_iter().map(|call| call.input["q"].clone()).collect();
    assert_eq!(requested, ["a", "b", "c"]);
    fleet.end().await;
}

/// AGS-45: a fork takes the results of the nodes before its turn, and runs the others.
#[tokio::test]
async fn a_fork_of_a_flow_continues_at_its_node() {
    let fleet = Fleet::builder().model(|_| Reply::text("seen")).start().await;
    let ask = |id: &str| {
        let mut model = llm(&fleet);
        model["id"] = format!("{id}-llm").into();
        part("LlmNode", id, json!({"llm_config": model, "prompt_template": id, "outputs": [text(id)]}))
    };
    let nodes =
        [start("start", &[]), ask("first"), ask("second"), end("end", &[text("first"), text("second")])];
    let control = [then("start", "first"), then("first", "second"), then("second", "end")];
    let done = run(&fleet, flow("forked", &nodes, &control, &[]), json!({})).await;
    let engagement = fleet.engagement_of(done["id"].as_str().unwrap()).await;
    let at = json!({"at_turn": 3, "phase": "infer"});
    let (status, fork) = fleet.post(&format!("/engagements/{engagement}/fork"), &at).await;
    assert!(status.is_success(), "{fork:#}");
    let again = fleet.settled(fork["job_id"].as_str().unwrap()).await;
    assert_eq!(again["result"], done["result"], "{again:#}");
    assert_eq!(fleet.models.count(), 3, "the first node is not asked again");
    fleet.end().await;
}
