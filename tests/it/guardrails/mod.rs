//! Guardrails: an input is checked before a model sees it, and an answer before a client does.

mod words;

use crate::policy::{ask, fleet, on_every_store, run, visible};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::documents::oas;
use turnstone_tests::model_server::Gate;
use turnstone_tests::{Backend, Fleet, OjsServer, Receiver, Reply, model_server};

fn input(assertion: &str) -> String {
    format!("guardrails:\n  input: {{tool_name: search, assertion: \"{assertion}\"}}\n")
}

fn output(assertion: &str) -> String {
    format!("guardrails:\n  output: {{tool_name: search, assertion: \"{assertion}\"}}\n")
}

/// Registers an agent with an output guardrail, and a delegate with these lines in its document.
async fn guarded_parent(fleet: &Fleet, child: &str) {
    fleet.register(oas("child", child)).await;
    let body = format!("capabilities: {{child: {{}}}}\n{}", output("echo.output.size() > 3"));
    fleet.register(oas("parent", &body)).await;
}

async fn failed(fleet: &Fleet, agent: &str) -> (Value, String) {
    let (job, engagement) = run(fleet, agent).await;
    assert_eq!(job["state"], "discarded", "a guardrail's no is not tried again: {job:#}");
    assert_eq!(job["error"]["details"]["oas_rule"], "OAS-46", "{job:#}");
    let state = fleet.get(&format!("/engagements/{engagement}")).await;
    assert_eq!((&state["status"], &state["results"]), (&json!("failed"), &Value::Null), "{state:#}");
    assert!(state["error"]["message"].as_str().unwrap().contains("guardrail"), "{state:#}");
    (job, engagement)
}

/// OAS-37, OAS-41, OAS-46: an input that does not pass reaches no model, and no tool runs.
#[tokio::test]
async fn an_input_that_does_not_pass_reaches_no_model() {
    on_every_store(async |backend| {
        let fleet = fleet(backend, vec![Reply::text("done")]).await;
        let body = format!(
            "{}  output: {{tool_name: search, assertion: \"true\"}}\n",
            input("!(echo.input.contains('go'))")
        );
        fleet.register(oas("strict", &body)).await;
        failed(&fleet, "strict").await;
        assert!(fleet.models.calls().is_empty());
        let calls = fleet.tools.calls();
        assert_eq!(calls.len(), 1, "the output guardrail is not asked either");
        assert_eq!(calls[0].input, json!({"input": "go"}));
        fleet.end().await;
    })
    .await;
}

/// OAS-41: a guardrail sees what the model will see: pictures and files as parts, in order. The audit has no bytes of a
/// picture.
#[tokio::test]
async fn pictures_and_files_are_checked_as_parts() {
    let fleet = fleet(Backend::Sqlite, vec![Reply::text("done")]).await;
    let body = input("size(echo.parts) == 3 && echo.parts[1].source.data == 'aGk='");
    fleet.register(oas("sees", &body)).await;
    let parts = |data: &str| {
        json!([{"type": "text", "text": "What is this?"},
               {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
               {"type": "file", "name": "a.csv", "content": "x;y", "media_type": "text/csv"}])
    };
    for (data, state, models) in [("aGk=", "completed", 1), ("aGkh", "discarded", 1)] {
        let job = json!({"type": "agent.sees", "args": parts(data), "meta": {"agent": "sees"}, "ext_agent_model": "m"});
        let id = fleet.push(&job).await;
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!((&done["state"], fleet.models.calls().len()), (&json!(state), models), "{done:#}");
        let engagement = fleet.engagement_of(&id).await;
        let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
        let kept = &audit["guardrails"][0]["input"]["parts"];
        assert!(kept[1]["source"]["data"].as_str().unwrap().starts_with("sha256:"), "{audit:#}");
        assert_eq!(kept[2]["content"], "x;y", "{audit:#}");
    }
    fleet.end().await;
}

/// OAS-42, OAS-44, OAS-45: every input and every answer is checked, and only the tool's output decides.
#[tokio::test]
async fn every_input_and_every_answer_is_checked() {
    on_every_store(async |backend| {
        let fleet = fleet(backend, vec![Reply::call("book", json!({"n": 1})), Reply::text("done")]).await;
        let body = "capabilities: {book: {}}\nguardrails:\n  input: {tool_name: search, assertion: \"tool == 'search'\"}\n  \
                    output: {tool_name: search, assertion: \"output.echo.output == 'done'\"}\nexposes: {names: history._list}\n";
        fleet.register(oas("both", body)).await;
        for n in 1..=3 {
            let (job, _) = run(&fleet, "both").await;
            assert_eq!(job["result"], json!({"text": "done", "names": ["book"]}), "no part of the history: {job:#}");
            assert_eq!(fleet.tools.calls_of("search"), 2 * n);
        }
        let last: Vec<_> = fleet.tools.calls()[6..].iter().map(|call| call.input.clone()).collect();
        assert_eq!(last, [json!({"input": "go"}), json!({"n": 1}), json!({"output": "done"})]);
        fleet.end().await;
    })
    .await;
}

/// OAS-36, OAS-45, OAS-46: an assertion that errs, returns no boolean or names the engagement does not pass.
#[tokio::test]
async fn a_guardrail_fails_closed() {
    let fleet = fleet(Backend::Sqlite, vec![Reply::text("done")]).await;
    for (n, assertion) in
        ["user.id == 'u-17'", "recent._name == ''", "1", "'yes'", "missing == 1", "echo.input > 3"]
            .iter()
            .enumerate()
    {
        fleet.register(oas(&format!("closed-{n}"), &input(assertion))).await;
        failed(&fleet, &format!("closed-{n}")).await;
    }
    assert!(fleet.models.calls().is_empty());
    fleet.end().await;
}

/// OAS-46: while a guardrail's tool is unreachable nothing passes, and the job is retried by its policy; the error
/// has the cause. When the tool is back, no paid answer is bought again.
#[tokio::test]
async fn a_short_outage_of_a_guardrail_ends_no_job() {
    on_every_store(async |backend| {
        for (side, asked_before) in [(input("echo.input == 'go'"), 0), (output("echo.output == 'done'"), 1)] {
            let fleet = fleet(backend, vec![Reply::text("done")]).await;
            fleet.register(oas("patient", &side)).await;
            // As many failures as one attempt has tries.
            fleet.tools.fail("search", 3);
            let id = ask(&fleet, "patient").await;
            let waiting = fleet.wait_for(&id, &[JobState::Retryable]).await;
            let message = waiting["error"]["message"].as_str().unwrap();
            assert!(message.contains("could not be asked") && message.contains("status 500"), "{waiting:#}");
            assert_eq!(waiting["error"]["details"]["oas_rule"], "OAS-46", "{waiting:#}");
            assert_eq!(fleet.models.calls().len(), asked_before);
            fleet.clock.advance_ms(60_000);
            fleet.tick().await;
            let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
            assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("done")), "{done:#}");
            assert_eq!((fleet.models.calls().len(), fleet.tools.calls_of("search")), (1, 4));
            let engagement = fleet.engagement_of(&id).await;
            let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
            let checks = audit["guardrails"].as_array().unwrap();
            let passed: Vec<_> = checks.iter().map(|check| check["passed"].as_bool().unwrap()).collect();
            assert_eq!(passed, [false, true], "{audit:#}");
            assert!(checks[0]["error"].as_str().unwrap().contains("status 500"), "{audit:#}");
            assert_eq!(checks[0]["call_id"], checks[1]["call_id"], "the same key: {audit:#}");
            fleet.end().await;
        }
    })
    .await;
}

/// OAS-46: while a guardrail stays unreachable nothing passes, until the job fails.
#[tokio::test]
async fn nothing_passes_an_unreachable_guardrail() {
    let fleet = fleet(Backend::Sqlite, vec![Reply::text("done")]).await;
    let broken = "guardrails: {input: {tool_name: broken, assertion: \"true\"}}\n";
    fleet.register(oas("down", broken)).await;
    let id = ask(&fleet, "down").await;
    for attempt in 1..3 {
        let waiting = fleet.wait_for(&id, &[JobState::Retryable]).await;
        assert_eq!(waiting["attempt"], attempt, "{waiting:#}");
        fleet.clock.advance_ms(60_000);
        fleet.tick().await;
        fleet.tools.seen(3 * (attempt + 1)).await;
    }
    let done = fleet.wait_for(&id, &[JobState::Discarded]).await;
    assert_eq!(done["error"]["code"], "OSSA_POLICY_VIOLATION", "{done:#}");
    assert!(fleet.models.calls().is_empty());
    fleet.end().await;
}

/// OAS-41, OAS-43, OAS-46: the audit has the guardrail's input, its output and the reason of a rejection, with the
/// withheld answer. A tenant's audit has the verdict only.
#[tokio::test]
async fn the_audit_has_the_verdict_of_a_guardrail() {
    on_every_store(async |backend| {
        let server = OjsServer::over(fleet(backend, vec![Reply::text("a spoken-word answer")]).await);
        let fleet = &server.fleet;
        for (agent, body, side, text) in [
            ("no-input", input("echo.input == ''"), "input", "go"),
            ("no-output", output("echo.output == ''"), "output", "a spoken-word answer"),
        ] {
            fleet.register(oas(agent, &body)).await;
            let meta = json!({"agent": agent, "tenant_id": "acme"});
            let id = fleet.push(&json!({"type": "agent.policy", "args": ["go"], "meta": meta})).await;
            fleet.wait_for(&id, &[JobState::Discarded]).await;
            let engagement = fleet.engagement_of(&id).await;
            let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
            let check = &audit["guardrails"][0];
            assert_eq!(audit["guardrails"].as_array().unwrap().len(), 1, "{audit:#}");
            assert_eq!(
                (&check["side"], &check["tool"], &check["passed"]),
                (&json!(side), &json!("search"), &json!(false))
            );
            assert_eq!((&check["input"], &check["turn"]), (&json!({side: text}), &json!(1)), "{audit:#}");
            assert_eq!(check["output"]["echo"], json!({side: text}), "{audit:#}");
            assert!(check["denial"].is_string() && check["at"].is_string(), "{audit:#}");
            let withheld = if side == "output" { json!(text) } else { Value::Null };
            assert_eq!(audit["answer_withheld"], withheld, "{audit:#}");
            let path = format!("/engagements/{engagement}/audit");
            let tenants = server.send(Method::GET, &path, &[("x-ojs-tenant", "acme")], "").await;
            if side == "input" {
                let tenants = tenants.expect(200).json();
                let check = tenants["guardrails"][0].as_object().unwrap();
                assert!(!check.contains_key("output") && !check.contains_key("input"), "{tenants:#}");
            } else {
                tenants.expect(403);
            }
        }
        server.fleet.end().await;
    })
    .await;
}

/// OAS-43, OAS-46: no text of a model is visible before it passes: not in the state, the events, the journal, the
/// messages or the job. Text that does not pass stays invisible.
#[tokio::test]
async fn nothing_is_visible_before_it_passes() {
    on_every_store(async |backend| {
        for (assertion, passes) in [("echo.output.size() > 3", true), ("echo.output == ''", false)] {
            let gate = Gate::default();
            let held = gate.clone();
            let script = move |request: &Value| match model_server::outcomes(request) {
                0 => Reply::call("book", json!({"note": "spoken-word"})),
                1 => Reply::call("spoken-word-tool", json!({})),
                _ => Reply::text("a spoken-word answer").behind(&held),
            };
            let fleet = Fleet::builder().on(backend).model(script).start().await;
            let body = format!(
                "capabilities: {{book: {{}}}}\n{}exposes: {{note: recent.book.inputs.note}}\n",
                output(assertion)
            );
            fleet.register(oas("quiet", &body)).await;
            let id = ask(&fleet, "quiet").await;
            fleet.models.seen(3).await;
            let engagement = fleet.engagement_of(&id).await;
            let seen = visible(&fleet, &id, &engagement).await;
            assert!(!seen.contains("spoken-word"), "while it works: {seen}");
            gate.open();
            let job = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
            let seen = visible(&fleet, &id, &engagement).await;
            assert_eq!(job["state"] == "completed", passes, "{job:#}");
            assert_eq!(seen.contains("spoken-word"), passes, "at the end: {seen}");
            assert_eq!(fleet.tools.calls_of("search"), 1);
            fleet.end().await;
        }
    })
    .await;
}

/// OAS-31, OAS-43: a reviewer of a guarded agent sees the call and the Engagement object, also within a tenant. No other
/// endpoint shows them before the answer has passed.
#[tokio::test]
async fn only_the_review_shows_a_guarded_call_to_its_reviewer() {
    let replies = vec![Reply::call("book", json!({"note": "spoken-word"})), Reply::text("fine")];
    let fleet = fleet(Backend::Sqlite, replies).await;
    let body = format!(
        "capabilities: {{book: {{user_identity: false, input_restriction: {{require_review: ann}}}}}}\n{}",
        output("echo.output.size() > 3")
    );
    fleet.register(oas("watched", &body)).await;
    let meta = json!({"agent": "watched", "tenant_id": "acme"});
    let id = fleet.push(&json!({"type": "agent.policy", "args": ["go"], "meta": meta})).await;
    fleet.wait_for(&id, &[JobState::Pending]).await;
    let engagement = fleet.engagement_of(&id).await;
    let seen = visible(&fleet, &id, &engagement).await;
    assert!(!seen.contains("spoken-word"), "{seen}");
    let client = turnstone_tests::http::client();
    let of_tenant = |path: String, tenant: &'static str| {
        let request = client.get(format!("{}{path}", fleet.url)).header("x-ojs-tenant", tenant);
        async move { request.send().await.unwrap().text().await.unwrap() }
    };
    let review = fleet.get("/reviews?state=open").await["items"][0]["id"].as_str().unwrap().to_owned();
    let shown = of_tenant(format!("/reviews/{review}"), "acme").await;
    assert!(shown.contains("spoken-word") && shown.contains("started_at"), "{shown}");
    let other = of_tenant(format!("/reviews/{review}"), "other").await;
    assert!(!other.contains("spoken-word"), "{other}");
    let (status, _) = fleet.post(&format!("/reviews/{review}/approve"), &json!({"by": "ann"})).await;
    assert!(status.is_success());
    fleet.wait_for(&id, &[JobState::Completed]).await;
    fleet.end().await;
}

/// OAS-43: the input that a guarded agent gives to a delegate is its model's text. Only the audit shows it; the
/// delegate's own endpoints do not.
#[tokio::test]
async fn a_guarded_agents_input_to_a_delegate_is_hidden() {
    on_every_store(async |backend| {
        let gate = Gate::default();
        let held = gate.clone();
        let script = move |request: &Value| {
            let child = request["messages"].to_string().contains("You are child");
            match (child, model_server::outcomes(request)) {
                (true, 0) => Reply::call("book", json!({"note": "spoken-word"})),
                (true, _) => Reply::text("the-helper-said-so").behind(&held),
                (false, 0) => Reply::call("child", json!({"input": "spoken-word"})),
                _ => Reply::text("all is well"),
            }
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        guarded_parent(&fleet, "capabilities: {book: {}}\n").await;
        let id = ask(&fleet, "parent").await;
        fleet.models.seen(3).await;
        let engagement = fleet.engagement_of(&id).await;
        let link = fleet.get(&format!("/engagements/{engagement}")).await["children"][0].clone();
        let [job, child] = ["job_id", "engagement_id"].map(|name| link[name].as_str().unwrap().to_owned());
        let seen = visible(&fleet, &job, &child).await + &visible(&fleet, &id, &engagement).await;
        assert!(!seen.contains("spoken-word"), "while it works: {seen}");
        gate.open();
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["result"], "all is well", "{done:#}");
        let seen = visible(&fleet, &job, &child).await;
        for words in ["spoken-word", "the-helper-said-so"] {
            assert!(!seen.contains(words), "no guardrail has seen these words: {seen}");
        }
        let last = fleet.models.calls().pop().unwrap().request.to_string();
        assert!(last.contains("the-helper-said-so"), "the guarded agent receives it: {last}");
        let audit = fleet.get(&format!("/engagements/{child}/audit")).await;
        assert_eq!(audit["attempts"][0]["input"], json!({"note": "spoken-word"}), "{audit:#}");
        let inputs: Vec<_> = fleet.tools.calls().into_iter().map(|call| call.input).collect();
        assert_eq!(inputs, [json!({"note": "spoken-word"}), json!({"output": "all is well"})]);
        fleet.end().await;
    })
    .await;
}

/// OAS-43, OAS-46: a comparison does not show it either. The audit and an export show it to operators only.
#[tokio::test]
async fn a_withheld_answer_is_in_no_comparison_and_no_tenants_audit() {
    on_every_store(async |backend| {
        let requested = AtomicUsize::new(0);
        let script = move |request: &Value| match (
            model_server::outcomes(request),
            requested.fetch_add(1, Ordering::SeqCst),
        ) {
            (0, nth) => Reply::call("book", json!({"note": format!("spoken-word {nth}")})),
            _ => Reply::text("a spoken-word answer"),
        };
        let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
        let fleet = &server.fleet;
        for (agent, assertion) in [("quiet", "echo.output == ''"), ("open", "true")] {
            let passes = agent == "open";
            fleet
                .register(oas(
                    agent,
                    &format!(
                        "capabilities: {{book: {{}}}}
{}",
                        output(assertion)
                    ),
                ))
                .await;
            let mut ids = Vec::new();
            for _ in 0..2 {
                let meta = json!({"agent": agent, "tenant_id": "acme"});
                let id = fleet.push(&json!({"type": "agent.policy", "args": ["go"], "meta": meta})).await;
                let job = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
                assert_eq!(job["state"] == "completed", passes, "{job:#}");
                ids.push(fleet.engagement_of(&id).await);
            }
            let reported =
                fleet.get(&format!("/engagements/{}/diff?with={}", ids[0], ids[1])).await.to_string();
            assert!(!reported.contains("spoken-word"), "{reported}");
            for part in ["audit", "export"] {
                let path = format!("/engagements/{}/{part}", ids[0]);
                let status = if passes { 200 } else { 403 };
                let seen =
                    server.send(Method::GET, &path, &[("x-ojs-tenant", "acme")], "").await.expect(status);
                let has_words = passes && part == "export";
                assert_eq!(
                    seen.text.contains("spoken-word"),
                    has_words,
                    "the tenant's {part}: {}",
                    seen.text
                );
                let all = server.send(Method::GET, &path, &[], "").await.expect(200);
                assert!(all.text.contains("spoken-word"), "the operator's {part}");
            }
        }
        server.fleet.end().await;
    })
    .await;
}

/// OAS-46: the answer of a sub-agent passes its own guardrails before it reaches its parent.
#[tokio::test]
async fn a_sub_agents_guardrails_apply_before_its_parent() {
    let script = |request: &Value| {
        let child = request["messages"].to_string().contains("You are child");
        match (child, model_server::outcomes(request)) {
            (true, _) => Reply::text("a rude word"),
            (false, 0) => Reply::call("child", json!({"input": "be kind"})),
            _ => Reply::text("done"),
        }
    };
    let fleet = Fleet::builder().model(script).start().await;
    let guards = "guardrails:\n  input: {tool_name: search, assertion: \"echo.input == 'be kind'\"}\n  output: {tool_name: \
                  search, assertion: \"!(echo.output.contains('rude'))\"}\n";
    fleet.register(oas("child", guards)).await;
    fleet.register(oas("parent", "capabilities: {child: {}}\n")).await;
    let id = ask(&fleet, "parent").await;
    let job = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(job["result"], "done", "{job:#}");
    let reported = fleet.models.calls().last().unwrap().request["messages"].to_string();
    assert!(reported.contains("guardrail") && !reported.contains("a rude word"), "{reported}");
    let checked: Vec<_> = fleet.tools.calls().into_iter().map(|call| call.input).collect();
    assert_eq!(checked, [json!({"input": "be kind"}), json!({"output": "a rude word"})]);
    fleet.end().await;
}

/// OAS-04, OAS-38, OAS-39, OAS-40: a guardrail names a tool and an assertion that is CEL, or the document is refused.
#[tokio::test]
async fn a_broken_guardrail_is_refused() {
    on_every_store(async |backend| {
        let fleet = fleet(backend, vec![Reply::text("done")]).await;
        fleet.register(oas("helper", "")).await;
        for (guardrail, rule) in [
            ("{tool_name: search}", "OAS-38"),
            ("{assertion: \"true\"}", "OAS-38"),
            ("{tool_name: helper, assertion: \"true\"}", "OAS-39"),
            ("{tool_name: nobody, assertion: \"true\"}", "OAS-39"),
            ("{tool_name: A_Tool, assertion: \"true\"}", "OAS-04"),
            ("{tool_name: search, assertion: \"1 +\"}", "OAS-40"),
        ] {
            for side in ["input", "output"] {
                let text = oas("broken-one", &format!("guardrails:\n  {side}: {guardrail}\n"));
                let (status, refusal) = fleet.send(Method::POST, "/agents", text).await;
                assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{guardrail}: {refusal:#}");
                assert!(refusal.to_string().contains(rule), "{guardrail}: {refusal:#}");
            }
        }
        fleet.end().await;
    })
    .await;
}

/// OAS-43, OAS-44: a JSON answer is checked as a whole, and not by its member `text`, whether or not JSON was
/// required.
#[tokio::test]
async fn a_json_answer_is_checked_as_a_whole() {
    on_every_store(async |backend| {
        for (said, passes) in
            [(json!({"text": "fine", "note": "spoken-word"}), false), (json!({"text": "fine", "note": "fine"}), true)]
        {
            let fleet = fleet(backend, vec![Reply::text(said.to_string())]).await;
            fleet.register(oas("strict", &output("!(echo.output.contains('spoken'))"))).await;
            let job = json!({"type": "agent.x", "args": ["go"], "ext_agent_model": "m", "meta": {"agent": "strict"},
                             "ext_agent_output_format": "json"});
            let id = fleet.push(&job).await;
            let ended = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
            assert_eq!(ended["state"] == "completed", passes, "{ended:#}");
            let engagement = fleet.engagement_of(&id).await;
            let seen = visible(&fleet, &id, &engagement).await;
            assert!(!seen.contains("spoken-word"), "{seen}");
            assert_eq!(fleet.tools.calls()[0].input, json!({"output": said.to_string()}));
            fleet.end().await;
        }
    })
    .await;
}

/// OAS-43: a guarded agent's run does not show the answer of its delegate, neither before nor after its own answer
/// passes: no guardrail has checked it.
#[tokio::test]
async fn a_delegates_answer_is_hidden_in_a_guarded_agents_run() {
    on_every_store(async |backend| {
        let gate = Gate::default();
        let held = gate.clone();
        let script = move |request: &Value| {
            let child = request["messages"].to_string().contains("You are child");
            match (child, model_server::outcomes(request)) {
                (true, _) => Reply::text("a spoken-word answer"),
                (false, 0) => Reply::call("child", json!({"input": "go on"})),
                _ => Reply::text("all is well").behind(&held),
            }
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        guarded_parent(&fleet, "").await;
        let id = ask(&fleet, "parent").await;
        fleet.models.seen(3).await;
        let engagement = fleet.engagement_of(&id).await;
        let seen = visible(&fleet, &id, &engagement).await;
        assert!(seen.contains("chat_request") && !seen.contains("spoken-word"), "while it works: {seen}");
        gate.open();
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["result"], "all is well", "{done:#}");
        let reported = fleet.get(&format!("/agents/parent/getevents/{engagement}")).await.to_string();
        assert!(
            reported.contains("all is well") && !reported.contains("spoken-word"),
            "at the end: {reported}"
        );
        fleet.end().await;
    })
    .await;
}

/// OAS-43: no endpoint exposes the answer of a guarded agent's delegate. It is not the job's result, in the feed of
/// all events, sent to a webhook, or in a task of A2A.
#[tokio::test]
async fn no_endpoint_exposes_a_guarded_agents_delegates_answer() {
    on_every_store(async |backend| {
        let receiver = Receiver::start().await;
        let script = |request: &Value| {
            let child = request["messages"].to_string().contains("You are child");
            match (child, model_server::outcomes(request)) {
                (true, _) => Reply::text("a spoken-word answer"),
                (false, 0) => Reply::call("child", json!({"input": "go on"})),
                _ => Reply::text("all is well"),
            }
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        guarded_parent(&fleet, "").await;
        let hook = json!({"url": receiver.url, "events": ["*"]});
        let (status, body) = fleet.post("/ojs/v1/webhooks/subscriptions", &hook).await;
        assert_eq!(status, StatusCode::CREATED, "{body:#}");
        let id = ask(&fleet, "parent").await;
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["result"], "all is well", "{done:#}");
        let engagement = fleet.engagement_of(&id).await;
        let link = fleet.get(&format!("/engagements/{engagement}")).await["children"][0].clone();
        let [job, child] = ["job_id", "engagement_id"].map(|name| link[name].as_str().unwrap().to_owned());
        let mut seen = visible(&fleet, &job, &child).await;
        assert!(seen.contains("job.completed"), "{seen}");
        let list =
            json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"includeArtifacts": true}});
        let client = turnstone_tests::http::client();
        let listed = client.post(format!("{}/a2a/child", fleet.url)).header("a2a-version", "1.0").json(&list);
        let listed: Value = listed.send().await.unwrap().json().await.unwrap();
        let task = &listed["result"]["tasks"][0];
        assert_eq!((&task["id"], &task["artifacts"]), (&json!(job), &Value::Null), "{listed:#}");
        seen += &listed.to_string();
        for path in [
            format!("/ojs/v1/jobs/{job}/result"),
            format!("/engagements/{child}/events?format=cloudevents"),
            "/ojs/v1/events?types=*&limit=1000".to_owned(),
        ] {
            seen += &fleet.get(&path).await.to_string();
        }
        let ends = |sent: &Value| sent["type"] == "job.completed";
        let reported = || receiver.received().iter().filter(|sent| ends(&sent.json())).count();
        fleet
            .until("the webhook receives both ends", async || {
                fleet.tick().await;
                reported() >= 2
            })
            .await;
        receiver.received().iter().for_each(|sent| seen += &sent.body);
        assert!(!seen.contains("spoken-word"), "no guardrail has seen these words: {seen}");
        fleet.end().await;
    })
    .await;
}

/// OAS-43, OAS-44: a delegate of a guarded agent cannot ask the user, because no endpoint may display its question.
/// Its model receives an error and continues.
#[tokio::test]
async fn a_guarded_agents_delegate_cannot_ask_the_user() {
    on_every_store(async |backend| {
        let script = |request: &Value| {
            let child = request["messages"].to_string().contains("You are child");
            match (child, model_server::outcomes(request)) {
                (true, 0) => Reply::call("ask-user", json!({"question": "spoken-word?"})),
                (true, _) => Reply::text("no answer"),
                (false, 0) => Reply::call("child", json!({"input": "go on"})),
                _ => Reply::text("all is well"),
            }
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        guarded_parent(&fleet, "capabilities: {ask-user: {}}\n").await;
        let id = ask(&fleet, "parent").await;
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["result"], "all is well", "{done:#}");
        let engagement = fleet.engagement_of(&id).await;
        let link = fleet.get(&format!("/engagements/{engagement}")).await["children"][0].clone();
        let [job, child] = ["job_id", "engagement_id"].map(|name| link[name].as_str().unwrap().to_owned());
        let seen = visible(&fleet, &job, &child).await;
        assert!(!seen.contains("spoken-word") && !seen.contains("input.requested"), "{seen}");
        let heard = fleet.models.calls()[2].request.to_string();
        assert!(heard.contains("there is nobody to ask"), "{heard}");
        fleet.end().await;
    })
    .await;
}
