//! Engagements with every kind of write, and kills around each write.

use super::every_write::{Scene, around, at_every_write, continues, killed_at_each_wait, kills, undisturbed};
use super::{FREE, job, script, shared_out};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use turnstone_domain::Phase;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// A tool call, then the answer.
async fn with_a_tool(backend: Backend) -> Scene {
    let fleet = Fleet::builder().on(backend).model(script("book"));
    Scene::set(fleet, FREE, async |fleet| fleet.push(&job("book")).await).await
}

fn named(agent: &str) -> Value {
    json!({"type": "agent.crash", "args": ["go"], "meta": {"agent": agent, "user": {"id": "u-7"}},
           "ext_agent_token_budget": 50_000})
}

/// A call that a reviewer has to confirm: the job parks.
async fn with_a_review(backend: Backend) -> Scene {
    let fleet = Fleet::builder().on(backend).model(script("book"));
    Scene::set(fleet, FREE, async |fleet| {
        let document = "kind: \"openagentspec:v1/agent\"\nname: booker\ndescription: An agent that books.\nintent: You book.\n\
                        owner: tests\ncapabilities: {book: {user_identity: false, input_restriction: \
                        {assertion: \"true\", require_review: manager}}}\n";
        fleet.register(document).await;
        fleet.push(&named("booker")).await
    })
    .await
}

/// An agent that waits for another one: the job parks and resumes when the other job ends.
async fn with_a_delegate(backend: Backend) -> Scene {
    let script = |request: &Value| {
        let is_lead =
            request["messages"][0]["content"].as_str().is_some_and(|role| role.contains("You are lead"));
        match (is_lead, model_server::outcomes(request)) {
            (true, 0) => Reply::call("scout", json!({"input": "look around"})),
            (true, _) => Reply::text("all is well"),
            (false, _) => Reply::text("seen"),
        }
    };
    Scene::set(Fleet::builder().on(backend).model(script), FREE, async |fleet| {
        for (name, capabilities) in [("scout", "{}"), ("lead", "{scout: {}}")] {
            fleet.register(oas(name, &format!("capabilities: {capabilities}"))).await;
        }
        fleet.push(&named("lead")).await
    })
    .await
}

/// A flow of a model, a tool that is not idempotent, and a map over two items with a tool each.
async fn with_a_flow(backend: Backend) -> Scene {
    use crate::agent_spec::{end, fills, flow, llm, part, property, register, start, then, tool};
    let text = |title: &str| property(title, "string");
    Scene::set(Fleet::builder().on(backend).model(|_| Reply::text("seen")), FREE, async |fleet| {
        let outputs = [text("tool"), property("echo", "object")];
        let list = |title: &str| json!({"title": title, "type": "array", "items": {"type": "string"}});
        let each = flow(
            "each",
            &[
                start("e-start", &[text("q")]),
                tool("e-call", "book", &[text("q")], &outputs),
                end("e-end", &outputs[..1]),
            ],
            &[then("e-start", "e-call"), then("e-call", "e-end")],
            &[],
        );
        let nodes = [
            start("start", &[list("qs")]),
            part("LlmNode", "look", json!({"llm_config": llm(fleet), "prompt_template": "look"})),
            part("MapNode", "map", json!({"subflow": each, "reducers": {"tool": "append"}})),
            part("OutputMessageNode", "say", json!({"message": "{{generated_text}}"})),
            end("end", &[list("collected_tool"), text("generated_text")]),
        ];
        let control = [then("start", "look"), then("look", "map"), then("map", "say"), then("say", "end")];
        let data = [
            fills("start.qs", "map.iterated_q"),
            fills("map.collected_tool", "end.collected_tool"),
            fills("look.generated_text", "say.generated_text"),
            fills("look.generated_text", "end.generated_text"),
        ];
        let name = register(fleet, flow("killed", &nodes, &control, &data)).await;
        let job = json!({"type": "agent.crash", "args": [{"qs": ["a", "b"]}], "meta": {"agent": name},
                         "ext_agent_token_budget": 50_000});
        fleet.push(&job).await
    })
    .await
}

/// A flow that asks its user, and a manager whose worker has a tool to confirm and a tool of the client.
async fn with_a_team(backend: Backend) -> Scene {
    use crate::agent_spec::{end, flow, llm_of, part, property, register, start, then};
    let script = |request: &Value| {
        let is_boss = request["messages"][0]["content"] == "You are boss.";
        match (is_boss, model_server::outcomes(request)) {
            (true, 0) => Reply::call("send_message", json!({"recipient": "worker", "message": "do it"})),
            (true, _) => Reply::call("submit_result", json!({"r": "done"})),
            (false, 0) => Reply::call("book", json!({"q": "boat"})),
            (false, 1) => Reply::call("measure", json!({"q": "wind"})),
            (false, _) => Reply::text("it is done"),
        }
    };
    let text = |title: &str| property(title, "string");
    Scene::set(Fleet::builder().on(backend).model(script), FREE, async |fleet| {
        let tool = |class: &str, name: &str, confirmed: bool| {
            let fields = json!({"description": "A tool.", "inputs": [text("q")], "outputs": [text("found")],
                                "requires_confirmation": confirmed});
            part(class, name, fields)
        };
        let agent = |name: &str, outputs: Value, tools: Value| {
            let model = llm_of(fleet, &format!("{name}-llm"));
            let fields = json!({"llm_config": model, "system_prompt": format!("You are {name}."), "description": "An agent.",
                                "outputs": outputs, "tools": tools, "human_in_the_loop": false});
            part("Agent", name, fields)
        };
        let tools = json!([tool("ServerTool", "book", true), tool("ClientTool", "measure", false)]);
        let team = json!({"group_manager": agent("boss", json!([text("r")]), json!([])),
                          "workers": [agent("worker", json!([]), tools)], "outputs": [text("r")]});
        let nodes = [
            start("start", &[]),
            part("InputMessageNode", "ask", json!({"message": "Go on?"})),
            part("AgentNode", "team", json!({"agent": part("ManagerWorkers", "both", team)})),
            end("end", &[text("r"), text("user_input")]),
        ];
        let control = [then("start", "ask"), then("ask", "team"), then("team", "end")];
        let name = register(fleet, flow("killed", &nodes, &control, &[])).await;
        let job = json!({"type": "agent.crash", "args": [{}], "meta": {"agent": name}, "ext_agent_token_budget": 50_000});
        fleet.push(&job).await
    })
    .await
}

/// A parallel node whose two flows are jobs of their own, with a model call each.
async fn with_parallel_flows(backend: Backend) -> Scene {
    use crate::agent_spec::{end, flow, llm_of, part, property, register, start, then};
    let scene = Scene::set(Fleet::builder().on(backend).model(|_| Reply::text("seen")), FREE, async |fleet| {
        let look = |id: &str| {
            let seen = property(&format!("{id}_seen"), "string");
            let one = std::slice::from_ref(&seen);
            let (first, node, last) = (format!("{id}-start"), format!("{id}-look"), format!("{id}-end"));
            let model = llm_of(fleet, &format!("{id}-llm"));
            let fields = json!({"llm_config": model, "prompt_template": id, "outputs": one});
            let nodes = [start(&first, &[]), part("LlmNode", &node, fields), end(&last, one)];
            flow(id, &nodes, &[then(&first, &node), then(&node, &last)], &[])
        };
        let both = part("ParallelFlowNode", "both", json!({"subflows": [look("one"), look("two")]}));
        let outputs = ["one_seen", "two_seen"].map(|title| property(title, "string"));
        let nodes = [start("start", &[]), both, end("end", &outputs)];
        let control = [then("start", "both"), then("both", "end")];
        let name = register(fleet, flow("parallel", &nodes, &control, &[])).await;
        let job = json!({"type": "agent.crash", "args": [{}], "meta": {"agent": name}, "ext_agent_token_budget": 50_000});
        fleet.push(&job).await
    })
    .await;
    scene.with_one_slot()
}

/// A flow of nodes that wait: for the user, for a confirmation, and for the client, the last one in a map.
async fn with_waits(backend: Backend) -> Scene {
    use crate::agent_spec::{end, fills, flow, llm, part, property, register, start, then, tool};
    let text = |title: &str| property(title, "string");
    let list = |title: &str| json!({"title": title, "type": "array", "items": {"type": "string"}});
    Scene::set(Fleet::builder().on(backend).model(|_| Reply::text("seen")), FREE, async |fleet| {
        let client =
            part("ClientTool", "measure", json!({"inputs": [text("q")], "outputs": [text("found")]}));
        let each = flow(
            "each",
            &[
                start("e-start", &[text("q")]),
                part("ToolNode", "e-call", json!({"tool": client})),
                end("e-end", &[text("found")]),
            ],
            &[then("e-start", "e-call"), then("e-call", "e-end")],
            &[],
        );
        let mut book =
            tool("book", "book", &[text("generated_text")], &[text("tool"), property("echo", "object")]);
        book["tool"]["requires_confirmation"] = true.into();
        let nodes = [
            start("start", &[list("qs")]),
            part("InputMessageNode", "ask", json!({"message": "Go on?"})),
            part("LlmNode", "look", json!({"llm_config": llm(fleet), "prompt_template": "{{user_input}}"})),
            book,
            part("MapNode", "map", json!({"subflow": each})),
            end("end", &[list("collected_found"), text("tool")]),
        ];
        let control =
            ["start", "ask", "look", "book", "map", "end"].windows(2).map(|two| then(two[0], two[1]));
        let data = [
            fills("start.qs", "map.iterated_q"),
            fills("ask.user_input", "look.user_input"),
            fills("look.generated_text", "book.generated_text"),
            fills("map.collected_found", "end.collected_found"),
            fills("book.tool", "end.tool"),
        ];
        let name = register(fleet, flow("waits", &nodes, &control.collect::<Vec<_>>(), &data)).await;
        let job = json!({"type": "agent.crash", "args": [{"qs": ["a"]}], "meta": {"agent": name},
                         "ext_agent_token_budget": 50_000});
        fleet.push(&job).await
    })
    .await
}

/// A provider that fails once: the job is retried.
async fn with_a_retry(backend: Backend) -> Scene {
    let first = AtomicBool::new(true);
    let script = move |_: &Value| match first.swap(false, Ordering::SeqCst) {
        true => Reply::Status(503),
        false => Reply::text("done"),
    };
    Scene::set(Fleet::builder().on(backend).model(script), FREE, async |fleet| {
        let mut job = job("book");
        job["options"] = json!({"retry": {"max_attempts": 5, "initial_interval": "PT0.1S", "jitter": false}});
        fleet.push(&job).await
    })
    .await
}

/// An agent with state: the turn waits for the commit of PERSIST.
async fn with_state(backend: Backend) -> Scene {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("state_append", json!({"key": "log", "value": "once"})),
        _ => Reply::text("done"),
    };
    Scene::set(Fleet::builder().on(backend).model(script), FREE, async |fleet| {
        let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: keeper}\nspec:\n  role: You keep.\n  \
                        state: {mode: session, storage: {type: kv}}\n";
        fleet.register(manifest).await;
        fleet.push(&named("keeper")).await
    })
    .await
}

/// The writes of this scene include the commit of every phase.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_workers_job_resumes_after_each_write() {
    let (writes, plain) = undisturbed(with_a_tool(Backend::Sqlite).await).await;
    for phase in Phase::ALL {
        assert!(writes.iter().any(|write| write.has(phase)), "{phase} is never committed: {writes:#?}");
    }
    for (backend, kill) in shared_out(&kills(&writes)) {
        continues(with_a_tool, (backend, kill), (&plain, Some(0))).await.close().await;
    }
}

/// AGS-45: a flow resumes at the node where its worker died: no committed answer is bought again, and the outputs are the
/// same. This test has a third of the kills; the long test below has all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_flow_resumes_at_its_node() {
    let (writes, plain) = undisturbed(with_a_flow(Backend::Sqlite).await).await;
    let kills: Vec<_> = kills(&writes).into_iter().step_by(3).collect();
    for (backend, kill) in shared_out(&kills) {
        continues(with_a_flow, (backend, kill), (&plain, Some(0))).await.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_parks_once_although_its_worker_is_killed() {
    around("park", with_a_review, Some(0)).await;
    around("park", with_a_delegate, None).await;
}

/// AGS-45: a flow that waits for its user, a review and its client waits once for each, although its worker is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a kill around each wait of a team"]
async fn a_team_waits_once_although_its_worker_is_killed() {
    around("park", with_a_team, Some(0)).await;
}

/// AGS-45: a worker that is killed while its flow waits for the user, a confirmation or the client changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_killed_while_its_flow_waits_changes_nothing() {
    let (_, plain) = undisturbed(with_waits(Backend::Sqlite).await).await;
    killed_at_each_wait(with_waits, Backend::Sqlite, (&plain, 3)).await;
}

/// AGS-45: the flows of a parallel node begin once and are joined once, although the worker is killed around the wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_flows_begin_once_although_their_worker_is_killed() {
    around("park", with_parallel_flows, None).await;
}

/// The same around every write, on both databases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: every write of a parallel node on both databases, about 40 killed processes"]
async fn parallel_flows_resume_after_every_write_on_both_databases() {
    at_every_write(with_parallel_flows, None).await;
}

/// The same for every scene that waits, on both databases, and around each write of its nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: kills at every wait and around every write of what waits, about 80 killed processes"]
async fn a_worker_killed_at_or_around_every_wait_changes_nothing_on_both_databases() {
    for backend in Backend::ALL {
        let (_, plain) = undisturbed(with_waits(backend).await).await;
        killed_at_each_wait(with_waits, backend, (&plain, 3)).await;
        let (_, plain) = undisturbed(with_a_team(backend).await).await;
        killed_at_each_wait(with_a_team, backend, (&plain, 3)).await;
        let (_, plain) = undisturbed(with_a_review(backend).await).await;
        killed_at_each_wait(with_a_review, backend, (&plain, 1)).await;
    }
    at_every_write(with_waits, Some(0)).await;
}

/// No write of a team is lost, and none happens twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: every write of a team on both databases, about 100 killed processes"]
async fn a_killed_team_resumes_after_every_write_on_both_databases() {
    at_every_write(with_a_team, Some(0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_retried_once_although_its_worker_is_killed() {
    around("retry", with_a_retry, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: every write of six engagements on both databases, about 130 killed processes"]
async fn a_killed_workers_job_resumes_after_every_write_on_both_databases() {
    at_every_write(with_a_tool, Some(0)).await;
    at_every_write(with_a_review, Some(0)).await;
    at_every_write(with_a_delegate, None).await;
    at_every_write(with_a_retry, None).await;
    at_every_write(with_state, None).await;
    at_every_write(with_a_flow, Some(0)).await;
}
