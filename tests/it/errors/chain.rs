//! How turns follow one another, and where they end (RS-18, RS-40, RS-41, OSSA §4; facts §6.2 cases 1 and 10).

use super::{answer, open_review, push, register};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashSet;
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// A model that always calls a tool, whether or not one is offered.
async fn insatiable(backend: Backend, spec: &str) -> Fleet {
    let fleet = Fleet::builder().on(backend).model(|_| Reply::call("search", json!({}))).start().await;
    register(&fleet, &format!("  tools: [{{type: http, name: search}}]\n{spec}")).await;
    fleet
}

/// RS-41, RS-40, facts §6.2 case 1: exactly `max_turns` model calls, no further attempt, and a visible escalation. No
/// reviewer is named, so the job is a dead letter.
#[tokio::test]
async fn max_turns_is_exact_and_escalates_to_the_dead_letters() {
    for backend in Backend::ALL {
        let fleet = insatiable(backend, "  constraints: {max_turns: 3}").await;
        let id = push(&fleet).await;
        let done = fleet.settled(&id).await;
        assert_eq!(
            (&done["state"], &done["error"]["code"]),
            (&json!("discarded"), &json!("OSSA_MAX_TURNS_EXCEEDED"))
        );
        let details = &done["error"]["details"];
        assert_eq!(
            (&details["ossa_code"], &details["recoverable"]),
            (&json!("MAX_TURNS_EXCEEDED"), &json!(true)),
            "{done:#}"
        );
        assert_eq!(details["escalation"]["type"], "alert");
        assert_eq!((fleet.models.calls().len(), fleet.tools.calls().len()), (3, 3));
        let dead = fleet.get("/ojs/v1/dead-letter").await;
        assert!(dead.to_string().contains(&id), "{dead:#}");
        assert!(fleet.event_names(&id).await.contains(&"error.escalated".to_owned()));
        let ids = fleet.number(&turnstone_tests::journal::phases(0)).await;
        assert_eq!(ids, 3);
        fleet.end().await;
    }
}

/// RS-41: a complete turn that failed counts. The job's next attempt makes only the remaining model calls.
#[tokio::test]
async fn max_turns_holds_over_the_attempts_of_a_job() {
    let fleet = Fleet::builder().model(|_| Reply::text("Well, it depends.")).start().await;
    register(&fleet, "  constraints: {max_turns: 2}").await;
    let job = json!({"type": "agent.desk", "args": ["go"], "meta": {"agent": "desk"},
                     "ext_agent_output_schema": {"type": "object"},
                     "options": {"retry": {"max_attempts": 3, "jitter": false}}});
    let id = fleet.push(&job).await;
    fleet.wait_for(&id, &[JobState::Retryable]).await;
    fleet.clock.advance_ms(60_000);
    fleet.tick().await;
    let done = fleet.wait_for(&id, &[JobState::Discarded, JobState::Completed]).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("OSSA_MAX_TURNS_EXCEEDED")),
        "{done:#}"
    );
    assert_eq!(fleet.models.calls().len(), 2);
    fleet.end().await;
}

/// RS-41, D2: the named reviewer grants as many turns again, or ends the job.
#[tokio::test]
async fn max_turns_asks_the_reviewer_of_the_document() {
    for (verb, calls) in [("approve", 4), ("reject", 2)] {
        let spec = "  constraints: {max_turns: 2}\n  autonomy: {escalation_policy: {target: ann}}";
        let fleet = insatiable(Backend::Sqlite, spec).await;
        let id = push(&fleet).await;
        fleet.wait_for(&id, &[JobState::Pending]).await;
        assert_eq!(fleet.models.calls().len(), 2);
        let review = open_review(&fleet).await;
        assert_eq!((&review["kind"], &review["reviewer"]), (&json!("escalation"), &json!("ann")));
        assert_eq!(review["question"]["error"]["ossa_code"], "MAX_TURNS_EXCEEDED", "{review:#}");
        let engagement = fleet.engagement_of(&id).await;
        let shown = fleet.get(&format!("/engagements/{engagement}")).await;
        assert_eq!(
            shown["awaiting"]["review_id"], review["id"],
            "a review without a call is listed, too: {shown:#}"
        );
        let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
        assert_eq!(audit["reviews"][0]["kind"], "escalation", "RS-27: the audit has it: {audit:#}");
        answer(&fleet, &review, verb).await;
        fleet.models.seen(calls).await;
        if verb == "approve" {
            // The next block of turns is used up as well.
            fleet
                .until("the next question", async || {
                    let open = fleet.get("/reviews?state=open").await;
                    open["items"].as_array().is_some_and(|open| open.len() == 1)
                })
                .await;
        } else {
            fleet.wait_for(&id, &super::ENDED).await;
        }
        assert_eq!(fleet.models.calls().len(), calls);
        if verb == "reject" {
            let done = fleet.job(&id).await;
            assert_eq!(done["error"]["code"], "OSSA_MAX_TURNS_EXCEEDED", "{done:#}");
            assert!(done["error"]["message"].as_str().unwrap().contains("because"), "{done:#}");
        }
        fleet.end().await;
    }
}

/// RS-41: a final answer in the last turn is a success.
#[tokio::test]
async fn an_answer_in_the_last_turn_is_a_success() {
    let fleet = Fleet::builder()
        .model(|request: &Value| match model_server::outcomes(request) {
            0..2 => Reply::call("search", json!({})),
            _ => Reply::text("at last"),
        })
        .start()
        .await;
    register(&fleet, "  tools: [{type: http, name: search}]\n  constraints: {max_turns: 3}").await;
    let id = push(&fleet).await;
    assert_eq!(fleet.settled(&id).await["result"], "at last");
    fleet.end().await;
}

/// OSSA §4: after `max_tool_turns`, or before the last of `reasoning.max_steps`, the model is called without tools; a tool
/// call is then MAX_TURNS_EXCEEDED.
#[tokio::test]
async fn after_max_tool_turns_an_answer_is_due() {
    for bound in ["turn_chain: {max_tool_turns: 2}", "reasoning: {strategy: react, max_steps: 3}"] {
        let fleet = insatiable(Backend::Sqlite, &format!("  {bound}")).await;
        let id = push(&fleet).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["error"]["code"], "OSSA_MAX_TURNS_EXCEEDED", "{done:#}");
        let offered: Vec<bool> =
            fleet.models.calls().iter().map(|call| call.request["tools"].is_array()).collect();
        assert_eq!((offered, fleet.tools.calls().len()), (vec![true, true, false], 2), "{bound}");
        fleet.end().await;
    }
}

/// OSSA §4: without `continue_on_tool_use` the turn with tool calls is the last one.
#[tokio::test]
async fn a_turn_with_tool_calls_may_be_the_last() {
    let fleet = insatiable(Backend::Sqlite, "  turn_chain: {continue_on_tool_use: false}").await;
    let id = push(&fleet).await;
    let done = fleet.settled(&id).await;
    assert_eq!((&done["state"], fleet.models.calls().len()), (&json!("completed"), 1), "{done:#}");
    assert_eq!((fleet.tools.calls().len(), done["ext_agent_tool_results"].as_array().unwrap().len()), (1, 1));
    fleet.end().await;
}

/// Waits until the job asks its user; returns its engagement.
async fn asks_the_user(fleet: &Fleet, id: &str) -> (String, Value) {
    fleet.wait_for(id, &[JobState::Pending]).await;
    let engagement = fleet.engagement_of(id).await;
    let shown = fleet.get(&format!("/engagements/{engagement}")).await;
    assert_eq!(shown["status"], "waiting-for-input", "{shown:#}");
    (engagement, shown["awaiting"].clone())
}

/// OSSA §4: `confirm_between_turns` asks the user before each turn but the first, on every protocol, and never an
/// operator. A rejection ends the job.
#[tokio::test]
async fn the_user_confirms_the_next_turn() {
    let fleet = insatiable(Backend::Sqlite, "  turn_chain: {confirm_between_turns: true}").await;
    let id = push(&fleet).await;
    for turn in 1..=3 {
        let (engagement, awaiting) = asks_the_user(&fleet, &id).await;
        assert_eq!((fleet.models.calls().len(), fleet.tools.calls().len()), (turn, turn));
        let prompt = awaiting["request_keys"]["approve"].as_str().unwrap();
        assert!(prompt.contains("May the next turn begin?") && prompt.contains("`search`"), "{prompt}");
        let events = fleet.get(&format!("/agents/desk/getevents/{id}?since=0")).await;
        assert_eq!(events.as_array().unwrap().last().unwrap()["type"], "wait_for_input", "{events:#}");
        for unclear in [json!("Yes"), json!("ok"), json!("yes, but"), json!(1)] {
            let answers = json!({"answers": {"approve": unclear}});
            let (status, _) = fleet.post(&format!("/engagements/{engagement}/answer"), &answers).await;
            assert_eq!((status.as_u16(), fleet.models.calls().len()), (422, turn), "{answers}");
        }
        let (status, body) = match turn {
            1 => {
                let answers = json!({"answers": {"approve": true}});
                fleet.post(&format!("/engagements/{engagement}/answer"), &answers).await
            }
            _ => {
                let keys = json!({"approve": turn < 3});
                let resume = json!({"type": "ResumeWithInput", "request_id": id, "request_keys": keys});
                fleet.post("/agents/desk/process", &resume).await
            }
        };
        assert!(status.is_success(), "{body:#}");
        if turn < 3 {
            fleet.models.seen(turn + 1).await;
        }
    }
    let done = fleet.wait_for(&id, &super::ENDED).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("OSSA_POLICY_VIOLATION"))
    );
    assert_eq!(fleet.models.calls().len(), 3);
    assert_eq!(done["errors"].as_array().unwrap().len(), 1, "parking is no failure");
    assert_eq!(fleet.get("/reviews").await["items"], json!([]), "operators have no review");
    fleet.end().await;
}

/// RS-18: the document's own token limit is OSSA's: it escalates, and no attempt follows.
#[tokio::test]
async fn the_documents_own_token_limit_escalates() {
    let fleet = insatiable(
        Backend::Sqlite,
        "  llm: {provider: openai, model: m, maxTokens: 10}\n  constraints: {max_tokens: 900}",
    )
    .await;
    let id = push(&fleet).await;
    let done = fleet.settled(&id).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("OSSA_MAX_TOKENS_EXCEEDED")),
        "{done:#}"
    );
    assert_eq!(done["error"]["details"]["escalation"]["type"], "alert");
    let used = done["ext_agent_tokens_used"].as_i64().unwrap();
    assert!(used <= 900 && used > 0, "{used}");
    fleet.end().await;
}

/// Agent extension §3: a job that sets the manifest's number as its budget is `retryable` when that is used up.
#[tokio::test]
async fn a_budget_of_the_same_number_is_the_jobs() {
    let spec = "  llm: {provider: openai, model: m, maxTokens: 10}\n  constraints: {max_tokens: 900}";
    let fleet = insatiable(Backend::Sqlite, spec).await;
    let job = json!({"type": "agent.desk", "args": ["go"], "meta": {"agent": "desk"}, "ext_agent_token_budget": 900});
    let id = fleet.push(&job).await;
    let done = fleet.settled(&id).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("retryable"), &json!("AGENT_TOKEN_BUDGET_EXCEEDED")),
        "{done:#}"
    );
    fleet.end().await;
}

/// RS-18: `max_tokens_per_turn` bounds prompt and answer of a turn before the model call. A provider that counts more
/// ends the job.
#[tokio::test]
async fn a_turn_uses_no_more_tokens_than_the_document_allows_it() {
    for (limit, counted, calls, code) in [
        (10, (10, 5), 0, "OSSA_MAX_TOKENS_EXCEEDED"),
        (900, (10, 5), 1, ""),
        (900, (10, 4000), 1, "OSSA_MAX_TOKENS_EXCEEDED"),
    ] {
        let fleet = Fleet::builder().model(move |_| Reply::Text("done".to_owned(), counted)).start().await;
        register(&fleet, &format!("  constraints: {{max_tokens_per_turn: {limit}}}")).await;
        let id = push(&fleet).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["error"]["code"].as_str().unwrap_or_default(), code, "{limit}: {done:#}");
        assert_eq!(done["state"], if code.is_empty() { "completed" } else { "discarded" });
        let requested = fleet.models.calls();
        assert_eq!(requested.len(), calls, "{limit}");
        let most = |request: &Value| {
            request["max_completion_tokens"].as_i64().or_else(|| request["max_tokens"].as_i64()).unwrap()
        };
        assert!(requested.iter().all(|call| most(&call.request) < 900), "{requested:#?}");
        if !code.is_empty() {
            let details = &done["error"]["details"];
            assert_eq!(
                (&details["ossa_code"], &details["max_tokens_per_turn"]),
                (&json!("MAX_TOKENS_EXCEEDED"), &json!(limit))
            );
        }
        fleet.end().await;
    }
}

/// RS-40: each turn has an interaction id of its own, also when turns run under several leases.
#[tokio::test]
async fn interaction_ids_are_never_repeated() {
    let fleet = insatiable(
        Backend::Sqlite,
        "  constraints: {max_turns: 4}\n  turn_chain: {confirm_between_turns: true}",
    )
    .await;
    let id = push(&fleet).await;
    for turn in 1..=3 {
        fleet.models.seen(turn).await;
        let (engagement, _) = asks_the_user(&fleet, &id).await;
        let answers = json!({"answers": {"approve": "yes"}});
        fleet.post(&format!("/engagements/{engagement}/answer"), &answers).await;
    }
    fleet.wait_for(&id, &super::ENDED).await;
    let engagement = fleet.engagement_of(&id).await;
    let checkpoints =
        fleet.get(&format!("/engagements/{engagement}/checkpoints?bodies=true&per_page=100")).await;
    let rows =
        checkpoints["checkpoints"].as_array().or_else(|| checkpoints["items"].as_array()).unwrap().clone();
    let ids: HashSet<String> =
        rows.iter().filter_map(|row| row["body"]["interaction_id"].as_str().map(str::to_owned)).collect();
    assert_eq!(ids.len(), 4, "{checkpoints:#}");
    fleet.end().await;
}

/// facts §6.2 case 10: a limit that the schema forgets is accepted, a misspelt one is not.
#[tokio::test]
async fn a_misspelt_limit_is_refused() {
    let fleet = Fleet::builder().start().await;
    let send = async |limit: &str| {
        let source = super::manifest(&format!("  constraints: {{{limit}: 3}}"));
        fleet.send(Method::POST, "/agents", source).await.0
    };
    assert!(send("max_turns").await.is_success());
    assert_eq!(send("max_trns").await.as_u16(), 422);
    fleet.end().await;
}
