//! The limits of a fork, the rows that it keeps, and its own state.

use super::{calls, fork_ran, forked, job, ran, said, trip};
use crate::inputs::register;
use crate::stores::on_stores;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, OjsServer, Reply, model_server};

on_stores!(
    everywhere: [rows_that_a_fork_reads_are_not_purged, a_conversation_is_kept_as_long_as_a_fork_reads_it, rows_that_a_fork_reads_are_kept_with_the_fork],
    sqlite_first: [
        points_that_do_not_exist_are_refused,
        a_call_without_a_record_fails_the_fork_and_is_not_made,
        another_tenants_engagement_is_not_found,
        state_is_that_of_the_point_and_the_forks_own,
        delegates_are_not_called_again,
    ],
);

async fn points_that_do_not_exist_are_refused(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let unknown = "01890000-0000-7000-8000-000000000000";
    for (id, body, status, code) in [
        (engagement.as_str(), json!({"at_turn": 5}), 422, "no_such_turn"),
        (&engagement, json!({"at_turn": 0}), 400, "invalid_request"),
        (&engagement, json!({}), 400, "invalid_request"),
        (&engagement, json!({"at_turn": 1, "phase": "act"}), 400, "invalid_request"),
        (&engagement, json!({"at_turn": 1, "set": {"temperature": 1}}), 400, "invalid_request"),
        (&engagement, json!({"at_turn": 1, "set": {"prompt": ""}}), 400, "invalid_request"),
        (unknown, json!({"at_turn": 1}), 404, "not_found"),
    ] {
        let (got, answer) = fleet.post(&format!("/engagements/{id}/fork"), &body).await;
        assert_eq!((got.as_u16(), &answer["error"]["code"]), (status, &json!(code)), "{body}: {answer:#}");
    }
    // A running turn can be forked at its committed phases.
    let waiting = Fleet::builder().on(backend).model(|_| Reply::Hang).start().await;
    let id = waiting.push(&job("go")).await;
    waiting.until("the model is called", async || !waiting.models.calls().is_empty()).await;
    let engagement = waiting.engagement_of(&id).await;
    let path = format!("/engagements/{engagement}/fork");
    let (status, answer) = waiting.post(&path, &json!({"at_turn": 1, "phase": "exec"})).await;
    assert_eq!(
        (status.as_u16(), &answer["error"]["details"]["furthest_phase"]),
        (422, &json!("infer")),
        "{answer:#}"
    );
    assert_eq!(waiting.number("SELECT count(*) FROM jobs").await, 1, "a refused fork leaves something");
    let (_, fork) = forked(&waiting, &engagement, json!({"at_turn": 1, "phase": "infer"})).await;
    for id in [&id, &fork] {
        waiting.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    }
    waiting.end().await;
    fleet.end().await;
}

async fn a_call_without_a_record_fails_the_fork_and_is_not_made(backend: Backend) {
    let other = |request: &Value| match request["messages"][0]["content"].as_str() {
        Some("Look elsewhere.") if model_server::outcomes(request) == 1 => {
            Reply::call("search", json!({"q": "else"}))
        }
        _ => trip(request),
    };
    let fleet = Fleet::builder().on(backend).model(other).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let body = json!({"at_turn": 2, "set": {"prompt": "Look elsewhere."}});
    let (fork, done) = fork_ran(&fleet, &engagement, body).await;
    assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("discarded"), 3), "{done:#}");
    assert!(done["error"].to_string().contains("live-tools"), "{:#}", done["error"]);
    // The answer is paid for; the fork can be forked where it stopped.
    let models = fleet.models.calls().len();
    let body = json!({"at_turn": 2, "phase": "exec", "live_tools": true});
    let (_, done) = fork_ran(&fleet, &fork, body).await;
    assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("completed"), 5), "{done:#}");
    assert_eq!(fleet.models.calls().len() - models, 2, "the paid answer was asked for again");
    fleet.end().await;
}

async fn another_tenants_engagement_is_not_found(backend: Backend) {
    let server = OjsServer::over(Fleet::builder().on(backend).model(trip).start().await);
    let mut job = job("go");
    job["meta"] = json!({"tenant_id": "a"});
    let engagement = ran(&server.fleet, &job).await;
    let (path, body) = (format!("/engagements/{engagement}/fork"), json!({"at_turn": 2}).to_string());
    for (tenant, status) in [("b", 404), ("a", 201)] {
        let headers = [("x-ojs-tenant", tenant), ("content-type", "application/json")];
        server.send(Method::POST, &path, &headers, body.as_str()).await.expect(status);
    }
    assert_eq!(server.fleet.number("SELECT count(*) FROM jobs WHERE tenant = 'a'").await, 2);
    let waits = async || server.fleet.number("SELECT count(*) FROM jobs WHERE ended_at IS NULL").await == 0;
    server.fleet.until("the fork ends", waits).await;
    server.fleet.end().await;
}

async fn rows_that_a_fork_reads_are_kept_with_the_fork(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let past = said(&fleet, &engagement).await;
    fleet.tick().await;
    // The fork begins when its origin is old enough to be pruned.
    fleet.clock.advance_ms(40 * 24 * 3_600_000);
    let (fork, _) = fork_ran(&fleet, &engagement, json!({"at_turn": 3})).await;
    fleet.tick().await;
    fleet.tick().await;
    assert_eq!(said(&fleet, &fork).await, past);
    assert_eq!(fleet.get(&format!("/engagements/{engagement}")).await["turns"], 4);
    for _ in 0..4 {
        fleet.clock.advance_ms(40 * 24 * 3_600_000);
        fleet.tick().await;
    }
    for table in ["jobs", "engagements", "journal", "tool_calls", "forks", "inheritances", "stubs"] {
        assert_eq!(fleet.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    fleet.end().await;
}

async fn rows_that_a_fork_reads_are_not_purged(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let past = said(&fleet, &engagement).await;
    fleet.clock.advance_ms(60_000);
    let (fork, done) = fork_ran(&fleet, &engagement, json!({"at_turn": 3})).await;
    let queue = format!("/ojs/v1/admin/queues/{}/jobs?confirm=true", done["queue"].as_str().unwrap());
    let purge = async |query: &str| {
        let (status, answer) = fleet.send(Method::DELETE, &format!("{queue}{query}"), "").await;
        assert!(status.is_success(), "{answer:#}");
        (answer["purged_count"].as_i64().unwrap(), answer["failed"].as_i64().unwrap())
    };
    // Only the origin is old enough.
    assert_eq!(purge("&older_than=PT30S").await, (0, 1));
    assert_eq!(said(&fleet, &fork).await, past);
    // It is deleted after its last reader.
    assert_eq!(purge("").await, (1, 1));
    assert_eq!(said(&fleet, &engagement).await, past);
    assert_eq!(purge("").await, (1, 0));
    for table in ["jobs", "engagements", "journal", "inheritances"] {
        assert_eq!(fleet.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    fleet.end().await;
}

/// OSSA `state.storage.retention`, of an agent that was forked.
async fn a_conversation_is_kept_as_long_as_a_fork_reads_it(backend: Backend) {
    let fleet = Fleet::builder().on(backend).model(trip).start().await;
    let spec = "  tools: [{type: http, name: search}, {type: http, name: book}]\n  \
                state: {mode: session, storage: {type: kv, retention: 2d}}\n";
    register(&fleet, spec).await;
    let job =
        json!({"type": "agent.desk", "args": ["go"], "ext_agent_model": "m", "meta": {"agent": "desk"}});
    let engagement = ran(&fleet, &job).await;
    let past = said(&fleet, &engagement).await;
    let day = 86_400_000;
    fleet.clock.advance_ms(day + day / 2);
    let (fork, done) = fork_ran(&fleet, &engagement, json!({"at_turn": 3})).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    fleet.clock.advance_ms(day);
    fleet.tick().await;
    fleet.tick().await;
    assert_eq!(said(&fleet, &fork).await, past, "the origin's time is over, the fork's is not");
    fleet.clock.advance_ms(2 * day);
    fleet
        .until("both are forgotten", async || {
            fleet.tick().await;
            fleet.number(turnstone_tests::journal::TEXTS).await == 0
        })
        .await;
    fleet.end().await;
}

/// OSSA §3: a fork sees the state at its point, and its changes are its own.
async fn state_is_that_of_the_point_and_the_forks_own(backend: Backend) {
    for (mode, user) in [("session", "anonymous"), ("long_running", "u-1")] {
        let script = |request: &Value| match model_server::outcomes(request) {
            0 => Reply::call("state_set", json!({"key": "step", "value": 1})),
            1 => Reply::call("state_set", json!({"key": "step", "value": 2})),
            2 => Reply::call("state_append", json!({"key": "log", "value": "late"})),
            _ => Reply::text("done"),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        register(&fleet, &format!("  state: {{mode: {mode}}}\n")).await;
        let job = json!({"type": "agent.desk", "args": ["go"], "ext_agent_model": "m",
                         "meta": {"agent": "desk", "user": {"id": user}}});
        let engagement = ran(&fleet, &job).await;
        let state = async |id: &str| fleet.get(&format!("/engagements/{id}/state")).await;
        let value = |state: &Value, key: &str| {
            let entries = state["entries"].as_array().unwrap();
            entries.iter().find(|entry| entry["key"] == key).map(|entry| entry["value"].clone())
        };
        let before = state(&engagement).await;
        assert_eq!((value(&before, "step"), value(&before, "log")), (Some(json!(2)), Some(json!(["late"]))));
        let (held, _) = forked(&fleet, &engagement, json!({"at_turn": 2, "phase": "emit"})).await;
        let (fork, done) = fork_ran(&fleet, &engagement, json!({"at_turn": 2})).await;
        assert_eq!(done["state"], "completed", "{mode}: {done:#}");
        let shown = state(&fork).await;
        assert_eq!(
            (value(&shown, "step"), &shown["shared"]),
            (Some(json!(2)), &json!(false)),
            "{mode}: {shown:#}"
        );
        // The list begins again: the later value of the other engagement is not in it.
        assert_eq!(value(&shown, "log"), Some(json!(["late"])), "{mode}: {shown:#}");
        assert_eq!(state(&engagement).await, before, "{mode}: the original's state changed");
        fleet
            .until("the other fork ends", async || {
                fleet.get(&format!("/engagements/{held}")).await["status"] == "completed"
            })
            .await;
        fleet.end().await;
    }
}

/// RS-35 in a fork: a delegate's answer is recorded like the outcome of a tool.
async fn delegates_are_not_called_again(backend: Backend) {
    let who = |request: &Value| request["messages"][0]["content"].as_str().unwrap_or_default().to_owned();
    let script = move |request: &Value| match (who(request).contains("lead"), model_server::outcomes(request))
    {
        (true, 0) => Reply::call("helper", json!({"input": "count"})),
        (true, _) => Reply::text("it is 7"),
        (false, _) => Reply::text("7"),
    };
    let fleet = Fleet::builder().on(backend).model(script).start().await;
    for (name, capabilities) in [("helper", ""), ("lead", "\"helper\": {}")] {
        let document = format!(
            "kind: \"openagentspec:v1/agent\"\nname: {name}\ndescription: d\nintent: You are {name}.\nowner: tests\n\
             capabilities: {{{capabilities}}}\n"
        );
        fleet.register(document).await;
    }
    let job =
        json!({"type": "agent.team", "args": ["go"], "meta": {"agent": "lead"}, "ext_agent_model": "m"});
    let engagement = ran(&fleet, &job).await;
    assert_eq!(fleet.number("SELECT count(*) FROM engagements").await, 2);
    let (fork, done) = fork_ran(&fleet, &engagement, json!({"at_turn": 1, "phase": "exec"})).await;
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("it is 7")), "{done:#}");
    assert_eq!(fleet.number("SELECT count(*) FROM engagements").await, 3, "the delegate was asked again");
    assert!(calls(&fleet, &fork).await[0]["stub_of"].is_string());
    let (live, done) =
        fork_ran(&fleet, &engagement, json!({"at_turn": 1, "phase": "exec", "live_tools": true})).await;
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("it is 7")), "{done:#}");
    assert_eq!(fleet.get(&format!("/engagements/{live}")).await["children"].as_array().unwrap().len(), 1);
    // A delegate's own engagement can be forked, and the fork has no parent.
    let lead = fleet.get(&format!("/engagements/{engagement}")).await;
    let child = lead["children"][0]["engagement_id"].as_str().unwrap();
    let (alone, done) = fork_ran(&fleet, child, json!({"at_turn": 1})).await;
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("7")), "{done:#}");
    let alone = fleet.get(&format!("/engagements/{alone}")).await;
    assert_eq!((&alone["parent"], &alone["depth"]), (&Value::Null, &json!(0)));
    fleet.wait_for(done["id"].as_str().unwrap(), &[JobState::Completed]).await;
    fleet.end().await;
}
