//! Recorded verdicts of guardrails and reviewers: a replay uses them, and a fork uses them for the same text.

use super::{exported, fork_ran, ran, runs_again};
use crate::stores::on_stores;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_domain::record::EngagementRecord;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Reply, model_server};
use turnstone_worker::rerun;

on_stores!(
    everywhere: [],
    sqlite_first: [
        verdicts_of_guardrails_are_replayed,
        decisions_of_reviewers_are_replayed,
        decisions_of_a_reviewing_agent_are_replayed,
    ],
);

/// Returns true when a request is from the agent with this name.
fn is_of(request: &Value, agent: &str) -> bool {
    request["messages"][0]["content"]
        .as_str()
        .is_some_and(|prompt| prompt.contains(&format!("You are {agent}")))
}

/// A model that books once and then answers; as a reviewer it approves.
fn booking(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        _ if is_of(request, "auditor") => Reply::text("{\"approve\": true, \"reason\": \"cheap\"}"),
        0 => Reply::call("book", json!({"seat": 1})),
        _ if request.to_string().contains("Be rude") => Reply::text("a rude word"),
        _ => Reply::text("booked"),
    }
}

fn job(agent: &str) -> Value {
    json!({"type": "agent.guarded", "args": ["go"], "meta": {"agent": agent, "user": {"id": "u-1"}},
           "options": {"retry": {"max_attempts": 1}}})
}

/// OAS-41, OAS-43: a record with guardrails is replayed, passed or not. A fork calls the guardrail's tool only for
/// text without a recorded verdict.
#[expect(clippy::cognitive_complexity, reason = "one story: what is forked needs what was run before it")]
async fn verdicts_of_guardrails_are_replayed(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(booking).start().await;
    let guarded = |input: &str, output: &str| {
        format!(
            "capabilities: {{book: {{}}}}\nguardrails:\n  input: {{tool_name: search, assertion: \"{input}\"}}\n  \
             output: {{tool_name: search, assertion: \"{output}\"}}\n"
        )
    };
    let polite = "!(echo.output.contains('rude'))";
    for (agent, input, output) in [
        ("polite", "echo.input == 'go'", polite),
        ("mute", "true", "echo.output == ''"),
        ("deaf", "echo.input == ''", "true"),
    ] {
        fleet.register(oas(agent, &guarded(input, output))).await;
    }
    let engagement = ran(&fleet, &job("polite")).await;
    let document = exported(&fleet, &engagement).await;
    assert_eq!(runs_again(&document).await, (2, 14));
    let refused = ran(&fleet, &job("mute")).await;
    assert_eq!(runs_again(&exported(&fleet, &refused).await).await, (1, 13));
    let unheard = ran(&fleet, &job("deaf")).await;
    assert_eq!(runs_again(&exported(&fleet, &unheard).await).await, (0, 1));
    // A record without the guardrail's verdict differs there.
    let mut silent = EngagementRecord::read(&document).unwrap();
    silent.events.retain(|event| event.name.as_str() != "guardrail.checked");
    let found = rerun(&silent).await.unwrap().difference.unwrap();
    assert!(found.what.contains("does not say what the input guardrail came to"), "{found:?}");

    // The same text needs no call, passed or not.
    let requested = fleet.tools.calls_of("search");
    for (of, state) in [(&engagement, "completed"), (&refused, "discarded")] {
        for (turn, phase) in [(1, "init"), (2, "infer"), (2, "emit")] {
            if (state, phase) == ("discarded", "infer") || (state, phase) == ("discarded", "init") {
                continue;
            }
            let (fork, done) = fork_ran(&fleet, of, json!({"at_turn": turn, "phase": phase})).await;
            assert_eq!(done["state"], state, "{phase}: {done:#}");
            assert_eq!(
                fleet.tools.calls_of("search"),
                requested,
                "{state} {phase}: the guardrail's tool was asked"
            );
            let again = exported(&fleet, &fork).await;
            assert!(runs_again(&again).await.1 >= 13);
        }
    }
    // Another text is checked, and nothing else is.
    let rude = json!({"at_turn": 1, "set": {"prompt": "Be rude."}});
    let (fork, done) = fork_ran(&fleet, &engagement, rude).await;
    assert_eq!(done["error"]["details"]["oas_rule"], "OAS-46", "{done:#}");
    assert_eq!(fleet.tools.calls_of("search"), requested + 1);
    assert_eq!(fleet.tools.calls().last().unwrap().input, json!({"output": "a rude word"}));
    runs_again(&exported(&fleet, &fork).await).await;
    // With live tools every check is made.
    let (_, done) = fork_ran(&fleet, &engagement, json!({"at_turn": 1, "live_tools": true})).await;
    assert_eq!((&done["state"], fleet.tools.calls_of("search")), (&json!("completed"), requested + 3));
    fleet.end().await;
}

/// Runs a job whose result a reviewer approves, and returns its engagement.
async fn approved(fleet: &Fleet) -> String {
    let id = fleet.push(&job("booker")).await;
    fleet.wait_for(&id, &[JobState::Pending]).await;
    let reviews = fleet.get("/reviews?state=open").await;
    let review = reviews["items"][0]["id"].as_str().unwrap();
    let (status, answer) =
        fleet.post(&format!("/reviews/{review}/approve"), &json!({"by": "ann", "reason": "fine"})).await;
    assert!(status.is_success(), "{answer:#}");
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "booked", "{done:#}");
    fleet.engagement_of(&id).await
}

fn reviewed_by(reviewer: &str) -> String {
    let body = format!("capabilities: {{book: {{output_restriction: {{require_review: '{reviewer}'}}}}}}\n");
    oas("booker", &body)
}

/// OAS-29, OAS-32: a reviewer's decision about a result is recorded, for a replay and for a fork.
async fn decisions_of_reviewers_are_replayed(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(booking).start().await;
    fleet.register(reviewed_by("ann")).await;
    let engagement = approved(&fleet).await;
    assert_eq!(runs_again(&exported(&fleet, &engagement).await).await, (2, 14));
    let mut forks = vec![engagement];
    for (turn, phase) in [(1, "init"), (2, "infer"), (1, "exec"), (1, "exec"), (1, "persist")] {
        let of = forks.last().unwrap();
        let (fork, done) = fork_ran(&fleet, of, json!({"at_turn": turn, "phase": phase})).await;
        assert_eq!(
            (&done["state"], &done["result"]),
            (&json!("completed"), &json!("booked")),
            "{phase}: {done:#}"
        );
        assert_eq!(runs_again(&exported(&fleet, &fork).await).await, (2, 14), "{phase}");
        forks.push(fork);
    }
    assert_eq!((fleet.number("SELECT count(*) FROM reviews").await, fleet.tools.calls().len()), (1, 1));
    // A changed result has not been reviewed.
    let calls = super::calls(&fleet, &forks[0]).await;
    let set = json!({"tool_results": {calls[0]["call_id"].as_str().unwrap(): {"seat": 2}}});
    let body = json!({"at_turn": 1, "phase": "exec", "set": set});
    let (_, id) = super::forked(&fleet, &forks[0], body).await;
    fleet.wait_for(&id, &[JobState::Pending]).await;
    assert_eq!(fleet.get("/reviews?state=open").await["items"][0]["question"]["outputs"], json!({"seat": 2}));
    let (status, answer) = fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    assert!(status.is_success(), "{answer:#}");
    fleet.end().await;
}

/// OAS-30, OAS-31: an agent that reviewed is neither called nor charged again.
async fn decisions_of_a_reviewing_agent_are_replayed(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(booking).start().await;
    fleet.register(oas("auditor", "")).await;
    fleet.register(reviewed_by("oagent://auditor")).await;
    let engagement = ran(&fleet, &job("booker")).await;
    let requested = || fleet.models.calls().iter().filter(|call| is_of(&call.request, "auditor")).count();
    assert_eq!((requested(), fleet.models.calls().len()), (1, 3));
    let document = exported(&fleet, &engagement).await;
    assert_eq!(runs_again(&document).await, (2, 14));
    let record = EngagementRecord::read(&document).unwrap();
    let named: Vec<&str> = record.delegates.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(named, ["auditor"], "whom it may ask is in its document");
    for phase in ["init", "exec"] {
        let (fork, done) = fork_ran(&fleet, &engagement, json!({"at_turn": 1, "phase": phase})).await;
        assert_eq!(done["result"], "booked", "{phase}: {done:#}");
        assert_eq!((requested(), fleet.tools.calls().len()), (1, 1), "{phase}");
        assert_eq!(runs_again(&exported(&fleet, &fork).await).await, (2, 14));
    }
    fleet.end().await;
}
