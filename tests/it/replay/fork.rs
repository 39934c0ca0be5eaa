//! A fork shares the past, resumes from any phase with changes, and repeats no recorded call.

use super::{calls, fork_ran, forked, job, ran, said, trip};
use crate::stores::on_stores;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::journal::MESSAGES;
use turnstone_tests::model_server::Gate;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

on_stores!(
    everywhere: [every_phase_can_be_forked, a_fork_of_a_fork_reads_both],
    sqlite_first: [
        a_changed_prompt_or_model_is_used,
        a_changed_result_reaches_the_model,
        live_tools_are_called,
        a_million_bytes_are_shared,
        a_fork_with_further_inputs_keeps_its_past,
    ],
);

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn every_phase_can_be_forked(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let past = said(&fleet, &engagement).await;
    let before = fleet.get(&format!("/engagements/{engagement}")).await;
    assert_eq!((fleet.models.calls().len(), fleet.tools.calls().len()), (4, 3));

    // Turn 2 of 4 is the second search: the remaining model calls depend on the phase.
    for (phase, requested) in
        [("init", 3), ("norm", 3), ("resol", 3), ("infer", 3), ("exec", 2), ("persist", 2), ("emit", 2)]
    {
        let (models, messages) = (fleet.models.calls().len(), fleet.number(MESSAGES).await);
        let (fork, done) = fork_ran(&fleet, &engagement, json!({"at_turn": 2, "phase": phase})).await;
        assert_eq!(
            (&done["state"], &done["result"]),
            (&json!("completed"), &json!("booked")),
            "{phase}: {done:#}"
        );
        assert_eq!(said(&fleet, &fork).await, past, "{phase}: another conversation");
        assert_eq!(fleet.models.calls().len() - models, requested, "{phase}");
        assert_eq!(fleet.tools.calls().len(), 3, "{phase}: a tool was called");
        // The three messages of turn 1 are shared; the fork has rows of its own for turns 2 to 4 only.
        assert_eq!(fleet.number(MESSAGES).await - messages, 5, "{phase}: the past was copied");
        let journal = calls(&fleet, &fork).await;
        let stubbed = journal.iter().filter(|call| call["stub_of"].is_string()).count();
        assert_eq!((journal.len(), stubbed), (3, 2), "{phase}: {journal:#?}");
        let state = fleet.get(&format!("/engagements/{fork}")).await;
        assert_eq!(state["forked_from"]["engagement_id"], engagement, "{state:#}");
        assert_eq!(
            (&state["forked_from"]["at_turn"], &state["forked_from"]["phase"]),
            (&json!(2), &json!(phase))
        );
        // The fork is charged for its own calls only, from a budget of its own.
        let paid: i64 = [19, 19, 15].iter().rev().take(requested).sum();
        assert_eq!(
            (&state["tokens"]["used"], &state["tokens"]["limit"]),
            (&json!(paid), &json!(50_000)),
            "{phase}"
        );
        assert_eq!(state["turns"], 4);
        let names = fleet.event_names(done["id"].as_str().unwrap()).await;
        assert_eq!(names[..2], ["job.enqueued", "engagement.forked"], "{names:?}");
    }
    assert_eq!(fleet.get(&format!("/engagements/{engagement}")).await, before, "the original changed");
    fleet.end().await;
}

async fn a_changed_prompt_or_model_is_used(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let set = json!({"prompt": "Be terse.", "model": "small"});
    let (fork, done) =
        fork_ran(&fleet, &engagement, json!({"at_turn": 4, "phase": "infer", "set": set})).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let requested = fleet.models.calls().pop().unwrap().request;
    assert_eq!(
        (&requested["model"], &requested["messages"][0]["content"]),
        (&json!("small"), &json!("Be terse.")),
        "{requested:#}"
    );
    assert_eq!(requested["messages"].as_array().unwrap().len(), 8, "system, input and three exchanges");
    let state = fleet.get(&format!("/engagements/{fork}")).await;
    assert_eq!(state["forked_from"]["set"], json!(["prompt", "model"]));
    fleet.end().await;
}

async fn a_changed_result_reaches_the_model(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let second = calls(&fleet, &engagement).await[1]["call_id"].as_str().unwrap().to_owned();
    let set = json!({"tool_results": {second.as_str(): {"hits": 0}}});
    for phase in ["init", "exec"] {
        let body = json!({"at_turn": 2, "phase": phase, "set": set});
        let (fork, done) = fork_ran(&fleet, &engagement, body).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        let heard =
            said(&fleet, &fork).await.into_iter().filter(|(_, role, _)| role == "tool").collect::<Vec<_>>();
        assert_eq!(heard[1].2, r#"{"hits":0}"#, "{heard:#?}");
        assert_eq!(calls(&fleet, &fork).await[1]["stub_of"], second);
        assert_eq!(fleet.tools.calls().len(), 3);
    }
    // A call before the point cannot be changed, nor can an unknown one.
    let first = calls(&fleet, &engagement).await[0]["call_id"].as_str().unwrap().to_owned();
    for (call, at, phase, code) in [
        (first.as_str(), 2, "init", "call_before_fork"),
        (second.as_str(), 2, "persist", "call_before_fork"),
        ("nobody", 2, "init", "no_such_call"),
    ] {
        let body = json!({"at_turn": at, "phase": phase, "set": {"tool_results": {call: 1}}});
        let (status, answer) = fleet.post(&format!("/engagements/{engagement}/fork"), &body).await;
        assert_eq!((status.as_u16(), &answer["error"]["code"]), (422, &json!(code)), "{answer:#}");
    }
    fleet.end().await;
}

async fn a_fork_of_a_fork_reads_both(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let past = said(&fleet, &engagement).await;
    let (first, _) = fork_ran(&fleet, &engagement, json!({"at_turn": 2, "phase": "exec"})).await;
    for (at_turn, phase) in [(3, "infer"), (2, "persist"), (1, "init"), (4, "emit")] {
        let (second, done) = fork_ran(&fleet, &first, json!({"at_turn": at_turn, "phase": phase})).await;
        assert_eq!(done["state"], "completed", "{at_turn}: {done:#}");
        assert_eq!(said(&fleet, &second).await, past, "{at_turn}");
        assert_eq!(calls(&fleet, &second).await.len(), 3);
        let page = fleet.get(&format!("/engagements/{second}/checkpoints?per_page=100")).await;
        assert_eq!(page["checkpoints"].as_array().unwrap().len(), 28, "{page:#}");
    }
    assert_eq!(fleet.tools.calls().len(), 3);
    // Pages of the shared conversation join without gaps.
    let page = fleet.get(&format!("/engagements/{first}/messages?after=2&limit=3")).await;
    let seqs: Vec<i64> =
        page["messages"].as_array().unwrap().iter().map(|m| m["seq"].as_i64().unwrap()).collect();
    assert_eq!((seqs, &page["has_more"]), (vec![3, 4, 5], &json!(true)));
    fleet.end().await;
}

async fn live_tools_are_called(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let body = json!({"at_turn": 3, "phase": "exec", "live_tools": true});
    let (fork, done) = fork_ran(&fleet, &engagement, body).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    assert_eq!(fleet.tools.calls_of("book"), 2);
    let keys: Vec<String> = fleet.tools.calls().into_iter().map(|call| call.key).collect();
    assert_ne!(keys[2], keys[3], "another call has another key");
    assert!(calls(&fleet, &fork).await.iter().all(|call| call["stub_of"].is_null()));
    fleet.end().await;
}

async fn a_million_bytes_are_shared(backend: Backend) {
    let long = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": "x".repeat(200_000)})),
        _ => Reply::text("done"),
    };
    let fleet = Fleet::builder().on(backend).model(long).start().await;
    let mut job = job(&"y".repeat(1_000_000));
    job["ext_agent_token_budget"] = json!(100_000_000);
    let engagement = ran(&fleet, &job).await;
    let bytes = "SELECT CAST(sum(length(said)) AS BIGINT) FROM journal";
    let before = fleet.number(bytes).await;
    let (fork, job) = forked(&fleet, &engagement, json!({"at_turn": 2})).await;
    let done = fleet.wait_for(&job, &[JobState::Completed]).await;
    assert_eq!(done["result"], "done");
    assert!(fleet.number(bytes).await - before < 1000, "the past was copied");
    assert_eq!(said(&fleet, &fork).await, said(&fleet, &engagement).await);
    let (_, done) = fork_ran(&fleet, &engagement, json!({"at_turn": 1, "phase": "exec"})).await;
    assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("completed"), 1), "{done:#}");
    fleet.end().await;
}

/// The first input of an engagement is not deleted while a further one runs. The part of the origin that a fork reads
/// is deleted with the last of the fork's inputs.
async fn a_fork_with_further_inputs_keeps_its_past(backend: Backend) {
    let gate = Gate::default();
    let held = gate.clone();
    let script = move |request: &Value| match request["messages"].to_string().contains("and then?") {
        true => Reply::text("nothing").behind(&held),
        false => trip(request),
    };
    let fleet = Fleet::builder().on(backend).model(script).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let (fork, first) = fork_ran(&fleet, &engagement, json!({"at_turn": 4, "phase": "infer"})).await;
    let before = fleet.now().plus_ms(500).to_rfc3339();
    fleet.clock.advance_ms(1_000);
    let next = crate::further::send(&fleet, &fork, "and then?", "?reopen=true").await;
    let requested = fleet.models.count();
    fleet.wait_for(&next, &[JobState::Active]).await;
    fleet.models.seen(requested.max(6)).await;
    let early = || json!({"state": "completed", "until": before});
    let delete = async |filter: Value| {
        let body = json!({"confirm": true, "filter": filter});
        let (status, answer) = fleet.post("/ojs/v1/admin/jobs/bulk/delete", &body).await;
        assert_eq!(status.as_u16(), 200, "{answer:#}");
        answer["ids"].clone()
    };
    assert_eq!(delete(early()).await, json!([]), "a fork reads one, a further input the other");
    gate.open();
    fleet.wait_for(&next, &[JobState::Completed]).await;
    let past = said(&fleet, &fork).await;
    assert_eq!(delete(early()).await, json!([first["id"]]));
    assert_eq!(said(&fleet, &fork).await, past, "the past went with the first input");
    assert_eq!(delete(json!({"state": "completed"})).await, json!([next]));
    for table in ["inheritances", "forks"] {
        assert_eq!(fleet.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    assert_eq!(
        delete(json!({"state": "completed"})).await.as_array().map(Vec::len),
        Some(1),
        "it has no reader now"
    );
    fleet.end().await;
}
