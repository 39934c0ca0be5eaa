//! OSSA §5, Delegation Patterns: supervisor, parallel, handoff.

use super::{answers, ask, calls, engagement, may_ask, oas, ossa, who};
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use turnstone_domain::JobState;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Backend, Fleet, Gate, Reply, model_server};

/// OAS-09, OAS-25, RS-02: the child has an engagement of its own under the user of the parent, and its answer is the
/// outcome of the call. The parent holds no slot meanwhile: one slot is enough for both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supervisor_resumes_with_its_childs_answer() {
    join_all(Backend::ALL.map(supervised)).await;
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn supervised(backend: Backend) {
    let script = |request: &serde_json::Value| match (who(request), answers(request).first()) {
        ("lead", None) => calls(&[("scout", "look around")]),
        ("lead", Some(answer)) => Reply::text(format!("scout says {answer}")),
        ("scout", _) => Reply::text(format!("seen: {}", newest(request))),
        (other, _) => panic!("{other} is called"),
    };
    let mut fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
    fleet.add_worker(1);
    fleet.register_all(&[oas("scout", &[]), oas("lead", &["scout"])]).await;
    let id = ask(&fleet, "lead", &json!({"ext_agent_token_budget": 50_000})).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "scout says {\"text\":\"seen: look around\"}", "{done:#}");
    assert_eq!((&done["attempt"], &done["ext_agent_tokens_used"]), (&json!(2), &json!(19 + 15)));
    assert_eq!(fleet.models.calls().len(), 3, "no paid answer was bought twice");

    let seen = engagement(&fleet, &id).await;
    let child = &seen["children"][0];
    assert_eq!(
        (&child["agent"], &child["status"], &child["depth"]),
        (&json!("scout"), &json!("success"), &json!(1))
    );
    assert_eq!(seen["tree"], json!({"engagements": 2, "tokens_used": 19 + 15 + 15}));
    assert_eq!(seen["tokens"]["used"], 19 + 15 + 15, "the tree has one budget: {seen:#}");
    let job = fleet.job(child["job_id"].as_str().unwrap()).await;
    assert_eq!((&job["ext_agent_parent_id"], &job["ext_agent_delegation_depth"]), (&json!(id), &json!(1)));
    assert_eq!((&job["type"], &job["queue"]), (&done["type"], &done["queue"]));
    assert!(job["meta"]["ossa.parent.interaction.id"].as_str().is_some_and(|id| !id.is_empty()), "{job:#}");
    let own = engagement(&fleet, job["id"].as_str().unwrap()).await;
    assert_eq!((&own["user"]["id"], &own["parent"]["job_id"]), (&json!("u-7"), &json!(id)));
    for (job, role) in [(&done, "parent"), (&job, "child")] {
        let id = job["id"].as_str().unwrap();
        let (began, ended) = (
            fleet.events_named(id, "delegation.started").await,
            fleet.events_named(id, "delegation.completed").await,
        );
        assert_eq!(
            (began.len(), &began[0]["role"], &began[0]["agent_id"]),
            (1, &json!(role), &json!("scout"))
        );
        assert_eq!(
            (ended.len(), &ended[0]["status"], &ended[0]["tokens_used"]),
            (1, &json!("success"), &json!(15))
        );
    }
    assert_eq!(fleet.event_names(job["id"].as_str().unwrap()).await.last().unwrap(), "job.completed");
    fleet.end().await;
}

/// All children of a turn run before any is awaited, and their answers are in the order of the calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_children_work_at_the_same_time() {
    join_all(Backend::ALL.map(parallel)).await;
}

async fn parallel(backend: Backend) {
    let gate = Gate::default();
    let held = gate.clone();
    let script = move |request: &serde_json::Value| match (who(request), answers(request)) {
        ("lead", received) if received.is_empty() => {
            calls(&[("scout", "north"), ("scout", "south"), ("clerk", "east")])
        }
        ("lead", received) => Reply::text(received.join("|")),
        (name, _) => Reply::text(format!("{name} {}", newest(request))).behind(&held),
    };
    let mut fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
    fleet.add_worker(4);
    let lead = ossa("lead", &may_ask("scout, clerk", "type: parallel"));
    fleet.register_all(&[oas("scout", &[]), oas("clerk", &[]), lead]).await;
    let id = ask(&fleet, "lead", &json!({})).await;
    fleet.models.seen(4).await;
    assert_eq!(fleet.job(&id).await["state"], "pending");
    assert_eq!(engagement(&fleet, &id).await["status"], "running");
    gate.open();
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    let expected = "{\"text\":\"scout north\"}|{\"text\":\"scout south\"}|{\"text\":\"clerk east\"}";
    assert_eq!(done["result"], expected, "{done:#}");
    assert_eq!(fleet.models.calls().len(), 5);
    assert_eq!(fleet.number("SELECT count(*) FROM tool_calls WHERE state = 'settled'").await, 3);
    fleet.end().await;
}

/// Handoff: the parent runs no further turn, and the child's answer is the job's result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_handoff_the_childs_answer_is_the_result() {
    let script = |request: &serde_json::Value| match who(request) {
        "desk" => calls(&[("expert", "he is angry"), ("expert", "and loud")]),
        _ => Reply::text(format!("calm down, {}", request["messages"].to_string().contains("user: go"))),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let desk = ossa(
        "desk",
        "collaboration: {handoffs: [{target_agent: expert, conditions: [anger], context_transfer: full}]}",
    );
    fleet.register_all(&[oas("expert", &[]), desk]).await;
    let id = ask(&fleet, "desk", &json!({})).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "calm down, true", "the whole conversation was handed over: {done:#}");
    let requested: Vec<String> =
        fleet.models.calls().iter().map(|call| who(&call.request).to_owned()).collect();
    assert_eq!(requested, ["desk", "expert"], "control was handed over once, and never came back");
    // Agent Protocol: an event names the agent that answers.
    let events = fleet.get(&format!("/agents/desk/getevents/{id}?since=0")).await;
    let spoken = |at: usize| (&events[at]["type"], &events[at]["agent"]);
    let last = events.as_array().unwrap().len() - 1;
    assert_eq!(spoken(0), (&json!("request_started"), &json!("desk")));
    assert_eq!(spoken(last), (&json!("request_completed"), &json!("expert")), "{events:#}");
    assert_eq!(engagement(&fleet, &id).await["children"][0]["mode"], "handoff");
    fleet.end().await;
}

/// OSSA §5: after a handoff the child answers the later inputs of the same conversation, until it hands over in turn.
/// When the child was deleted, the engagement's own agent answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_handoff_the_child_answers_later_inputs() {
    for backend in Backend::ALL {
        let script = |request: &serde_json::Value| {
            let newest = newest(request);
            match who(request) {
                "desk" if newest != "bye" => Reply::call("expert", json!({"input": "he is angry"})),
                "expert" if newest == "higher" && model_server::outcomes(request) < 2 => {
                    Reply::call("chief", json!({"input": "he is still angry"}))
                }
                name => Reply::text(format!("{name}: {newest}")),
            }
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let hands_to = |name: &str, other: &str| {
            ossa(
                name,
                &format!("collaboration: {{handoffs: [{{target_agent: {other}, conditions: [anger]}}]}}"),
            )
        };
        fleet
            .register_all(&[oas("chief", &[]), hands_to("expert", "chief"), hands_to("desk", "expert")])
            .await;
        let job = ask(&fleet, "desk", &json!({})).await;
        fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await;
        let id = fleet.engagement_of(&job).await;
        let say = async |text: &str| {
            let job = crate::further::send(&fleet, &id, text, "?reopen=true").await;
            let done = fleet.wait_for(&job, &[JobState::Completed, JobState::Discarded]).await;
            done["result"].as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(say("and now?").await, "expert: and now?");
        let run = fleet.get(&format!("/agents/desk/getevents/{id}")).await;
        let spoken = run.as_array().unwrap().iter().rev().take_while(|event| event["type"] != "chat_request");
        let names: Vec<&serde_json::Value> = spoken.map(|event| &event["agent"]).collect();
        assert!(names.len() > 2 && names.iter().all(|name| **name == "expert"), "{run:#}");
        let received = fleet.models.calls().pop().unwrap().request["messages"].to_string();
        assert!(
            received.contains("\"go\"") && received.contains("expert: he is angry"),
            "the same conversation: {received}"
        );
        assert_eq!(say("higher").await, "chief: he is still angry");
        assert_eq!(say("thanks").await, "chief: thanks");
        let (status, body) = fleet.send(Method::DELETE, "/agents/chief?allow_unresolved=1", "").await;
        assert!(status.is_success(), "{body:#}");
        assert_eq!(say("bye").await, "desk: bye");
        fleet.end().await;
    }
}

/// RS-23: the answer of a child passes the filters of the agent that handed over.
#[tokio::test]
async fn after_a_handoff_the_parents_filters_apply() {
    let script = |request: &serde_json::Value| match who(request) {
        "expert" => Reply::text("write to ada@example.org"),
        _ => calls(&[("expert", "he is angry")]),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let desk = |name: &str, action: &str| {
        ossa(
            name,
            &format!(
                "collaboration: {{handoffs: [{{target_agent: expert, conditions: [anger]}}]}}\n  safety: \
                 {{pii_detection: {{types: [email], action: {action}}}}}"
            ),
        )
    };
    fleet.register_all(&[oas("expert", &[]), desk("mild", "redact"), desk("strict", "block")]).await;
    let end = async |agent: &str| {
        let id = ask(&fleet, agent, &json!({"options": {"retry": {"max_attempts": 1}}})).await;
        fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await
    };
    assert_eq!(end("mild").await["result"], "write to [redacted email]");
    let strict = end("strict").await;
    assert_eq!(
        (&strict["state"], &strict["error"]["code"]),
        (&json!("discarded"), &json!("OSSA_CONTENT_FILTERED")),
        "{strict:#}"
    );
    assert!(!strict.to_string().contains("ada@example.org"), "{strict:#}");
    fleet.end().await;
}

/// OAS-12, OAS-13: a name that a tool and an agent share means the tool; `oagent://` means the agent.
#[tokio::test]
async fn a_tool_goes_before_an_agent_of_its_name() {
    let script = |request: &serde_json::Value| match (who(request), answers(request).len()) {
        ("lead", 0) => Reply::Calls(
            request["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| (tool["function"]["name"].as_str().unwrap().to_owned(), json!({"input": "x"})))
                .collect(),
            (1, 1),
        ),
        ("lead", _) => Reply::text("done"),
        (name, _) => Reply::text(name),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[oas("search", &[]), oas("lead", &["search", "oagent://search"])]).await;
    let id = ask(&fleet, "lead", &json!({})).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(fleet.tools.calls().len(), 1, "the tool was called");
    assert_eq!(engagement(&fleet, &id).await["children"].as_array().unwrap().len(), 1, "and the agent");
    fleet.end().await;
}
