//! Depth and budget of a tree (agent extension §2.3 and §3, D8).

use super::{answers, ask, calls, engagement, may_ask, oas, ossa, who};
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use turnstone_domain::JobState;
use turnstone_domain::agent::{FanOut, FanOutRules, OwnFanOut};
use turnstone_tests::model_server::newest;
use turnstone_tests::{Backend, Fleet, Reply};

/// AIX-12: an agent at the deepest depth runs and may not delegate; no child job exists below it.
#[tokio::test]
async fn a_chain_ends_at_its_depth() {
    let script = |request: &Value| match answers(request).first() {
        None => calls(&[("self", "deeper")]),
        Some(answer) => Reply::text(answer.clone()),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[ossa("self", &may_ask("self", "max_depth: 5"))]).await;
    let id = ask(&fleet, "self", &json!({"ext_agent_max_delegation_depth": 2})).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert!(done["result"].as_str().unwrap().contains("AGENT_MAX_DELEGATION_DEPTH"), "{done:#}");
    let seen = engagement(&fleet, &id).await;
    let depths: Vec<&Value> =
        seen["children"].as_array().unwrap().iter().map(|link| &link["depth"]).collect();
    assert_eq!(depths, [&json!(1), &json!(2)]);
    fleet.end().await;
}

/// AIX-06, AIX-11: a job that names a parent is one level below it, whatever depth it claims, and uses the parent's
/// budget.
#[tokio::test]
async fn a_job_from_outside_joins_the_tree_that_it_names() {
    let script = |request: &Value| match newest(request) {
        "go" => Reply::Hang,
        _ => Reply::text("done"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[oas("lead", &[])]).await;
    let root =
        ask(&fleet, "lead", &json!({"ext_agent_token_budget": 20_000, "ext_agent_max_delegation_depth": 2}))
            .await;
    fleet.models.seen(1).await;
    let below = async |parent: &str| {
        let job = json!({"type": "agent.x", "args": ["help"], "ext_agent_model": "m", "ext_agent_parent_id": parent,
                         "ext_agent_delegation_depth": 0, "ext_agent_token_budget": 900_000});
        fleet.post("/ojs/v1/jobs", &job).await
    };
    let mut parent = root.clone();
    for depth in [1, 2] {
        let (status, body) = below(&parent).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        let id = body["job"]["id"].as_str().unwrap().to_owned();
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(
            (&done["state"], &done["ext_agent_delegation_depth"]),
            (&json!("completed"), &json!(depth)),
            "{done:#}"
        );
        assert_eq!(
            engagement(&fleet, &id).await["tokens"]["limit"],
            20_000,
            "the tree's budget, not its own"
        );
        parent = id;
    }
    let seen = engagement(&fleet, &root).await;
    assert_eq!((&seen["tree"]["engagements"], &seen["tokens"]["used"]), (&json!(3), &json!(30)), "{seen:#}");
    assert_eq!(fleet.events_named(&root, "delegation.started").await.len(), 1);
    // Its own agent may go to depth 10; the root's maximum applies to the whole chain.
    let (status, body) = below(&parent).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    let details = &body["error"]["details"];
    assert_eq!(body["error"]["code"], "AGENT_MAX_DELEGATION_DEPTH");
    assert_eq!((&details["depth"], &details["max_depth"]), (&json!(3), &json!(2)), "{body:#}");
    fleet.send(reqwest::Method::DELETE, &format!("/ojs/v1/jobs/{root}"), "").await;
    fleet.end().await;
}

/// Agent extension §2.3: a parent that the tenant does not have is refused, in a batch with the index of its job.
#[tokio::test]
async fn an_unknown_parent_is_refused() {
    let fleet = Fleet::builder().start().await;
    let job = json!({"type": "agent.x", "args": ["x"], "ext_agent_model": "m",
                     "ext_agent_parent_id": "01890000-0000-7000-8000-000000000000"});
    let (status, body) = fleet.post("/ojs/v1/jobs", &job).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (StatusCode::BAD_REQUEST, &json!("AGENT_INVALID_PARAMETER"))
    );
    assert_eq!(body["error"]["details"]["field"], "ext_agent_parent_id", "{body:#}");
    let plain = json!({"type": "x", "args": []});
    let (status, body) = fleet.post("/ojs/v1/jobs/batch", &json!({"jobs": [plain, job]})).await;
    assert_eq!(
        (status, &body["error"]["details"]["index"]),
        (StatusCode::BAD_REQUEST, &json!(1)),
        "{body:#}"
    );
    assert_eq!(fleet.number("SELECT count(*) FROM jobs").await, 0);
    fleet.end().await;
}

/// AIX-13, Agent extension §2.3: the larger of the computed and the claimed depth counts. A job that claims to be at
/// its maximum may not delegate, and one that claims to be deeper is refused.
#[tokio::test]
async fn the_larger_depth_counts() {
    let script = |request: &Value| match answers(request).first() {
        None => calls(&[("scout", "look")]),
        Some(answer) => Reply::text(answer.clone()),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[oas("scout", &[]), ossa("lead", &may_ask("scout", "max_depth: 4"))]).await;
    for (claimed, most) in [(2, 2), (4, 10)] {
        let more = json!({"ext_agent_delegation_depth": claimed, "ext_agent_max_delegation_depth": most});
        let id = ask(&fleet, "lead", &more).await;
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert!(done["result"].as_str().unwrap().contains("AGENT_MAX_DELEGATION_DEPTH"), "{done:#}");
        let seen = engagement(&fleet, &id).await;
        assert_eq!((&seen["depth"], &seen["children"]), (&json!(claimed), &json!([])), "{seen:#}");
        assert_eq!(done["ext_agent_delegation_depth"], claimed);
    }
    let job = json!({"type": "agent.team", "args": ["go"], "meta": {"agent": "lead"}, "ext_agent_delegation_depth": 5});
    let (status, body) = fleet.post("/ojs/v1/jobs", &job).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    let details = &body["error"]["details"];
    assert_eq!((&details["depth"], &details["max_depth"]), (&json!(5), &json!(4)), "{body:#}");
    fleet.end().await;
}

/// AIX-06: children reserve from the budget of the root, so what one child uses is not available to the others.
#[tokio::test]
async fn a_tree_spends_from_one_budget() {
    let script = |request: &Value| match (who(request), answers(request)) {
        ("lead", received) if received.is_empty() => calls(&[("scout", "a"), ("scout", "b")]),
        ("lead", received) => Reply::text(received.join("|")),
        // The first child uses nearly the whole budget.
        _ if newest(request) == "a" => Reply::Text("much".into(), (100, 1000)),
        _ => Reply::text("little"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[oas("scout", &[]), oas("lead", &["scout"])]).await;
    let more = json!({"ext_agent_token_budget": 1_700, "options": {"retry": {"max_attempts": 1}}});
    let id = ask(&fleet, "lead", &more).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    let seen = engagement(&fleet, &id).await;
    assert!(seen["tokens"]["used"].as_i64().unwrap() <= 1_700, "{seen:#}");
    assert_eq!(seen["tokens"]["reserved"], 0);
    assert_eq!(seen["children"].as_array().unwrap().len(), 2, "{done:#}");
    assert_eq!(seen["tree"]["tokens_used"], seen["tokens"]["used"], "{seen:#}");
    fleet.end().await;
}

/// OAS-A18: a circle of agents is a warning when they are registered, and ends at the maximum depth.
#[tokio::test]
async fn a_circle_is_reported_and_bounded() {
    let script = |request: &Value| match (who(request), answers(request).first()) {
        ("ping", None) => calls(&[("pong", "x")]),
        ("pong", None) => calls(&[("ping", "x")]),
        (_, answer) => Reply::text(answer.cloned().unwrap_or_default()),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[oas("ping", &[]), oas("pong", &["ping"])]).await;
    let (_, body) = fleet.send(reqwest::Method::POST, "/agents", oas("ping", &["pong"])).await;
    assert_eq!(body["warnings"][0]["rule"], "OAS-A18", "{body:#}");
    assert!(
        body["warnings"][0]["message"].as_str().unwrap().starts_with("ping asks pong asks ping"),
        "{body:#}"
    );
    let id = ask(&fleet, "ping", &json!({"ext_agent_max_delegation_depth": 3})).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert!(done["result"].as_str().unwrap().contains("AGENT_MAX_DELEGATION_DEPTH"), "{done:#}");
    assert_eq!(engagement(&fleet, &id).await["tree"]["engagements"], 4);
    fleet.end().await;
}

/// Design §5: a delegate's own limit applies beside that of the tree, and its own delegates use it as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegate_has_a_limit_of_its_own_within_the_tree() {
    join_all(Backend::ALL.map(own_limit)).await;
}

async fn own_limit(backend: Backend) {
    let script = |request: &Value| match (who(request), answers(request)) {
        ("lead", received) if received.is_empty() => calls(&[("mid", "a")]),
        ("lead", received) => Reply::text(received.join("|")),
        ("mid", received) if received.is_empty() => calls(&[("leaf", "b")]),
        ("mid", _) => Reply::text("bought beyond the limit"),
        _ => Reply::Text("much".into(), (50, 1_000)),
    };
    let fleet = Fleet::builder().on(backend).model(script).start().await;
    let mid = format!("constraints: {{max_tokens: 1200}}\n  {}", may_ask("leaf", "max_depth: 5"));
    fleet.register_all(&[oas("leaf", &[]), ossa("mid", &mid), oas("lead", &["mid"])]).await;
    let id = ask(&fleet, "lead", &json!({"ext_agent_token_budget": 50_000})).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert!(done["result"].as_str().unwrap().contains("OSSA_MAX_TOKENS_EXCEEDED"), "{done:#}");
    assert_eq!(fleet.models.calls().len(), 4, "nothing was bought over the limit");
    let seen = engagement(&fleet, &id).await;
    assert_eq!(
        (&seen["tokens"]["limit"], &seen["tokens"]["used"]),
        (&json!(50_000), &json!(19 + 19 + 1_050 + 15))
    );
    assert_eq!(fleet.number("SELECT settled FROM totals WHERE name LIKE 'engagement/%'").await, 19 + 1_050);
    assert_eq!(fleet.number("SELECT CAST(sum(reserved) AS BIGINT) FROM totals").await, 0);
    fleet.end().await;
}

/// A delegate's own limit is raised through the id of its engagement; the tree's limit stays.
#[tokio::test]
async fn a_delegates_own_limit_is_raised() {
    let script = |request: &Value| match newest(request) {
        "go" => Reply::Hang,
        _ => Reply::text("done"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[oas("lead", &[])]).await;
    let root = ask(&fleet, "lead", &json!({"ext_agent_token_budget": 20_000})).await;
    fleet.models.seen(1).await;
    let job = json!({"type": "agent.x", "args": ["help"], "ext_agent_model": "m", "ext_agent_parent_id": root,
                     "ext_agent_token_budget": 20});
    let id = fleet.push(&job).await;
    let short = fleet.wait_for(&id, &[JobState::Retryable, JobState::Discarded]).await;
    let child = fleet.engagement_of(&id).await;
    let message = short["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("--engagement {child}")), "{message}");
    let (status, body) = fleet
        .send(
            reqwest::Method::PATCH,
            &format!("/engagements/{child}/budget"),
            r#"{"raise": {"tokens": 9000}}"#,
        )
        .await;
    assert_eq!((status, &body["tokens"]["limit"]), (StatusCode::OK, &json!(9_020)), "{body:#}");
    fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(engagement(&fleet, &root).await["tokens"]["limit"], 20_000);
    fleet.send(reqwest::Method::DELETE, &format!("/ojs/v1/jobs/{root}"), "").await;
    fleet.end().await;
}

/// Bounds for all agents, and others for one.
fn bounds(jobs: u32, children: u32, of: &str, own: OwnFanOut) -> FanOutRules {
    let all = FanOut { max_jobs_per_tree: jobs, max_children_per_turn: children };
    FanOutRules { all, of: BTreeMap::from([(of.to_owned(), own)]) }
}

/// An agent that delegates to itself three times in each turn, on two workers, stops at the bound of its tree.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_calls_itself_stops_at_the_bound_of_its_tree() {
    join_all(Backend::ALL.map(fan_out)).await;
}

async fn fan_out(backend: Backend) {
    let script = |request: &Value| match answers(request) {
        received if received.is_empty() => calls(&[("self", "a"), ("self", "b"), ("self", "c")]),
        received => Reply::text(received.concat()),
    };
    let rules =
        FanOutRules { all: FanOut { max_jobs_per_tree: 20, ..FanOut::DEFAULT }, ..FanOutRules::default() };
    let mut fleet = Fleet::builder().on(backend).model(script).fan_out(rules).start().await;
    fleet.add_worker(8);
    fleet.register_all(&[ossa("self", &may_ask("self", "type: parallel, max_depth: 10"))]).await;
    let id = ask(&fleet, "self", &json!({})).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    let result = done["result"].as_str().unwrap();
    assert!(result.contains("AGENT_MAX_TREE_JOBS") && result.contains("at most 20 are allowed"), "{done:#}");
    assert_eq!(fleet.number("SELECT count(*) FROM jobs").await, 20, "on {backend:?}");
    assert_eq!(fleet.models.count(), 40, "on {backend:?}: two calls for each job");
    fleet.end().await;
}

/// The operator raises the bounds of one agent. Its name in the definition of a job raises nothing.
#[tokio::test]
async fn bounds_are_raised_for_one_agent() {
    let script = |request: &Value| match answers(request) {
        received if received.is_empty() && who(request) != "scout" => {
            calls(&[("scout", "a"), ("scout", "b"), ("scout", "c"), ("scout", "d")])
        }
        received => Reply::text(format!("heard {}", received.join("|"))),
    };
    let own = OwnFanOut { max_jobs_per_tree: Some(5), max_children_per_turn: Some(4) };
    for backend in Backend::ALL {
        let rules = bounds(4, 2, "lead", own);
        let fleet = Fleet::builder().on(backend).model(script).fan_out(rules).start().await;
        fleet.register_all(&[oas("scout", &[]), oas("lead", &["scout"]), oas("other", &["scout"])]).await;
        for (agent, delegates, refused) in [("lead", 4, 0), ("other", 2, 2)] {
            let id = ask(&fleet, agent, &json!({})).await;
            let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
            let result = done["result"].as_str().unwrap();
            assert_eq!(result.matches("AGENT_MAX_CHILDREN").count(), refused, "{agent}: {done:#}");
            let seen = engagement(&fleet, &id).await;
            assert_eq!(seen["children"].as_array().unwrap().len(), delegates, "{agent}: {seen:#}");
        }
        fleet.end().await;
    }
}

/// A client cannot add jobs to a tree beyond its bound.
#[tokio::test]
async fn a_full_tree_takes_no_job_from_a_client() {
    let script = |request: &Value| match newest(request) {
        "go" => Reply::Hang,
        _ => Reply::text("done"),
    };
    let rules = bounds(2, 32, "other", OwnFanOut::default());
    let fleet = Fleet::builder().model(script).fan_out(rules).start().await;
    fleet.register_all(&[oas("lead", &[])]).await;
    let root = ask(&fleet, "lead", &json!({})).await;
    fleet.models.seen(1).await;
    let job =
        json!({"type": "agent.x", "args": ["help"], "ext_agent_model": "m", "ext_agent_parent_id": root});
    let id = fleet.push(&job).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    let (status, body) = fleet.post("/ojs/v1/jobs", &job).await;
    let error = &body["error"];
    assert_eq!((status, &error["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("AGENT_MAX_TREE_JOBS")));
    let details = &error["details"];
    assert_eq!((&details["jobs"], &details["max_jobs_per_tree"]), (&json!(2), &json!(2)), "{body:#}");
    fleet.send(reqwest::Method::DELETE, &format!("/ojs/v1/jobs/{root}"), "").await;
    fleet.end().await;
}
