//! A database that forgets: a job runs, its commits are lost, and it runs again. Other systems see the same ids, so they
//! can tell that a request is repeated.

use super::{die, job, on_every_store, replace};
use crate::agent_spec::{self, end, fills, flow, llm, part, property, register, start, then, tool};
use crate::agent_spec::{Far, far_agent};
use crate::tools::{parrot, with_servers};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use turnstone_domain::JobState;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, FleetBuilder, Reply, model_server};
use turnstone_worker::Deps;

/// A fleet without workers.
fn idle(backend: Backend) -> FleetBuilder {
    Fleet::builder().on(backend).workers(0)
}

/// Runs a job until it is in the state `end`, loses everything since it was accepted, and runs it again. Returns the ids of all jobs.
async fn run_twice(
    fleet: &mut Fleet,
    (id, end): (&str, JobState),
    change: impl Fn(Deps) -> Deps,
) -> [Vec<String>; 2] {
    fleet.place.remember().await;
    let mut jobs = [Vec::new(), Vec::new()];
    for (run, jobs) in jobs.iter_mut().enumerate() {
        if run > 0 {
            fleet.place.forget().await;
            assert_eq!(fleet.job(id).await["state"], "available", "the record is the older one");
        }
        fleet.add_worker_with(4, &change);
        let done = fleet.wait_for(id, &[end, JobState::Discarded]).await;
        assert_eq!(done["state"], end.as_str(), "{done:#}");
        fleet.stop_workers().await;
        let ids = fleet.place.rows::<(String,)>("SELECT id FROM jobs ORDER BY id").await;
        jobs.extend(ids.into_iter().map(|(id,)| id));
    }
    jobs
}

/// Returns the idempotency keys that the tool server received in both runs.
fn keys(fleet: &Fleet) -> [Vec<String>; 2] {
    let mut keys: Vec<String> = fleet.tools.calls().into_iter().map(|call| call.key).collect();
    let second = keys.split_off(keys.len() / 2);
    [keys, second]
}

/// Asserts that both runs had the same keys in the same order, so many, and none of them twice.
fn same(runs: &[Vec<String>; 2], count: usize) {
    assert_eq!(runs[0], runs[1]);
    assert_eq!(runs[0].iter().collect::<BTreeSet<_>>().len(), count, "{runs:?}");
    assert_eq!(runs[0].len(), count, "{runs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_repeated_after_lost_commits_has_the_same_key() {
    on_every_store(async |backend| {
        let script = model_server::calls(vec![
            vec![("book", json!({"n": 1})), ("book", json!({"n": 1}))],
            vec![("book", json!({"n": 1}))],
        ]);
        let fleet = idle(backend).model(script).start().await;
        let id = fleet.push(&job("book")).await;
        fleet.place.remember().await;
        // The worker is killed after three calls; the outcome of the last one is in no database.
        die(&fleet, 4, super::FREE, "2:outcome:before").await;
        fleet.place.forget().await;
        replace(&fleet, 4, super::FREE, &id).await;
        assert_eq!(fleet.job(&id).await["state"], "completed");
        same(&keys(&fleet), 3);
        // The same request for another job is another call.
        let other = fleet.push(&job("book")).await;
        replace(&fleet, 4, super::FREE, &other).await;
        let keys: BTreeSet<String> = fleet.tools.calls().into_iter().map(|call| call.key).collect();
        assert_eq!(keys.len(), 6, "{keys:?}");
        fleet.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn a_call_of_an_mcp_tool_repeated_after_lost_commits_has_the_same_key() {
    on_every_store(async |backend| {
        let script = model_server::calls(vec![vec![("parrot_meta", json!({}))]]);
        let mut fleet = idle(backend).model(script).start().await;
        let id = fleet.push(&job("parrot.meta")).await;
        let servers = json!({"parrot": parrot("well", &json!({}))});
        run_twice(&mut fleet, (&id, JobState::Completed), |deps| with_servers(deps, &servers)).await;
        // The tool returns the metadata of its call.
        let requests = fleet.models.calls();
        let outcome = |at: usize| model_server::tool_outcome(&requests[at].request).to_owned();
        assert!(outcome(1).contains("idempotencyKey"), "{}", outcome(1));
        assert_eq!(outcome(1), outcome(3));
        fleet.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegate_begun_again_after_lost_commits_is_the_same_job() {
    on_every_store(async |backend| {
        let script = |request: &Value| {
            let is_lead = model_server::who(request) == "lead";
            match (is_lead, model_server::outcomes(request)) {
                (true, 0) => {
                    let call = |what: &str| ("scout".to_owned(), json!({"input": what}));
                    Reply::Calls(vec![call("the port"), call("the port")], (12, 7))
                }
                (true, _) => Reply::text("all is well"),
                (false, 0) => Reply::call("book", json!({"n": 1})),
                (false, _) => Reply::text("booked"),
            }
        };
        let mut fleet = idle(backend).model(script).start().await;
        fleet.register(oas("scout", "capabilities: {book: {user_identity: false}}")).await;
        fleet.register(oas("lead", "capabilities: {scout: {}}")).await;
        let lead = json!({"type": "agent.run", "args": ["go"], "meta": {"agent": "lead", "user": {"id": "u-7"}},
                          "ext_agent_token_budget": 50_000});
        let id = fleet.push(&lead).await;
        let jobs = run_twice(&mut fleet, (&id, JobState::Completed), |deps| deps).await;
        same(&jobs, 3);
        let sorted = keys(&fleet).map(|mut keys| {
            keys.sort();
            keys
        });
        same(&sorted, 2);
        fleet.end().await;
    })
    .await;
}

/// Iterations of a map and flows of a parallel node, which are jobs of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_a_flow_repeated_after_lost_commits_have_the_same_keys() {
    on_every_store(async |backend| {
        let mut fleet = idle(backend).model(|_| Reply::text("seen")).start().await;
        let text = |title: &str| property(title, "string");
        let list = |title: &str| json!({"title": title, "type": "array", "items": {"type": "string"}});
        let call = |id: &str, results: usize| {
            let (first, node, last) = (format!("{id}-start"), format!("{id}-call"), format!("{id}-end"));
            let outputs = [text("tool"), property("echo", "object")];
            let nodes = [
                start(&first, &[text("q")]),
                tool(&node, "book", &[text("q")], &outputs),
                end(&last, &outputs[..results]),
            ];
            flow(id, &nodes, &[then(&first, &node), then(&node, &last)], &[])
        };
        let nodes = [
            start("start", &[list("qs"), text("q")]),
            part("MapNode", "map", json!({"subflow": call("each", 1), "reducers": {"tool": "append"}})),
            part("LlmNode", "look", json!({"llm_config": llm(&fleet), "prompt_template": "look"})),
            part("ParallelFlowNode", "both", json!({"subflows": [call("one", 0), call("two", 0)]})),
            end("end", &[list("collected_tool")]),
        ];
        let control = [then("start", "map"), then("map", "look"), then("look", "both"), then("both", "end")];
        let data = [
            fills("start.qs", "map.iterated_q"),
            fills("start.q", "both.q"),
            fills("map.collected_tool", "end.collected_tool"),
        ];
        let name = register(&fleet, flow("forgotten", &nodes, &control, &data)).await;
        let id = fleet.push(&agent_spec::job(&name, &json!({"qs": ["a", "a"], "q": "a"}))).await;
        let jobs = run_twice(&mut fleet, (&id, JobState::Completed), |deps| deps).await;
        same(&jobs, 3);
        let sorted = keys(&fleet).map(|mut keys| {
            keys.sort();
            keys
        });
        same(&sorted, 4);
        fleet.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_to_a_remote_agent_repeated_after_lost_commits_has_the_same_id() {
    on_every_store(async |backend| {
        let (mut fleet, far) = (idle(backend).start().await, Far::start().await);
        let nodes = [
            start("start", &[]),
            part("AgentNode", "ask", json!({"agent": far_agent("far", &far.url)})),
            end("end", &[]),
        ];
        let control = [then("start", "ask"), then("ask", "end")];
        let name = register(&fleet, flow("asks", &nodes, &control, &[])).await;
        let job = json!({"type": "flow.run", "args": [{}, {"role": "user", "content": "Hello."}], "meta": {"agent": name}});
        let id = fleet.push(&job).await;
        // After the answer the agent waits for its user.
        run_twice(&mut fleet, (&id, JobState::Pending), |deps| deps).await;
        let ids: Vec<String> =
            far.messages().iter().map(|sent| sent["messageId"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids.len(), 2, "{ids:?}");
        assert_eq!(ids[0], ids[1]);
        fleet.end().await;
    })
    .await;
}
