//! State of agents between turns: tools of the model, committed by PERSIST or rolled back (OSSA §1.6 and §3, RS-28 …
//! RS-31, RS-44; facts §6.2 cases 3 and 4).

use crate::inputs::{bodies, desk, job, register};
use crate::paused_timers::PausedTimers;
use serde_json::{Value, json};
use std::time::Duration;
use turnstone_domain::JobState;
use turnstone_tests::model_server::calls;
use turnstone_tests::{Backend, Fleet, Gate, Reply, model_server};

const SESSION: &str =
    "  state: {mode: session}\n  tools: [{type: http, name: search}, {type: http, name: book}]\n";

/// The timeout of an attempt whose last call hangs, in milliseconds. Shorter than the tool's.
const TIMEOUT_MS: u64 = 45_000;

async fn state(fleet: &Fleet, id: &str) -> Value {
    let engagement = fleet.engagement_of(id).await;
    fleet.get(&format!("/engagements/{engagement}/state")).await
}

fn keys(state: &Value) -> Value {
    let entries = state["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| (entry["key"].as_str().unwrap().to_owned(), entry["value"].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Returns the outcomes in the last model request, in order.
fn outcomes(fleet: &Fleet) -> Vec<Value> {
    let calls = fleet.models.calls();
    let messages = calls.last().unwrap().request["messages"].as_array().unwrap().clone();
    let reported = messages.iter().filter(|message| message["role"] == "tool");
    reported
        .map(|m| m["content"].as_str().map(|c| serde_json::from_str(c).unwrap_or(json!(c))).unwrap())
        .collect()
}

/// RS-28, RS-31, RT-4: state survives turns. Each turn's changes are one record in the audit, and the state is
/// readable.
#[tokio::test]
async fn state_is_kept_across_turns_and_recorded() {
    let script = calls(vec![
        vec![
            ("state_set", json!({"key": "plan", "value": {"step": 1}})),
            ("state_append", json!({"key": "log", "value": "a"})),
        ],
        vec![("state_get", json!({"key": "plan"})), ("state_append", json!({"key": "log", "value": "b"}))],
        vec![("state_delete", json!({"key": "plan"})), ("state_get_many", json!({"keys": ["plan", "log"]}))],
    ]);
    let fleet = desk(SESSION, script).await;
    let id = fleet.push(&job(&json!(["go"]))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let told_to_model = outcomes(&fleet);
    assert_eq!(told_to_model[2]["value"], json!({"step": 1}), "{told_to_model:#?}");
    assert_eq!(told_to_model[5]["values"], json!({"log": ["a", "b"]}));
    let shown = state(&fleet, &id).await;
    assert_eq!((keys(&shown), &shown["version"]), (json!({"log": ["a", "b"]}), &json!(3)), "{shown:#}");
    assert_eq!((&shown["mode"], &shown["isolation_level"]), (&json!("session"), &json!("serializable")));
    let engagement = fleet.engagement_of(&id).await;
    let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
    let records = audit["state"].as_array().unwrap();
    assert_eq!(records.len(), 3, "{records:#?}");
    assert_eq!(records[0]["status"], "committed");
    let second = &records[1]["changes"][0];
    assert_eq!((&second["key"], &second["operation"]), (&json!("log"), &json!("append")));
    assert_eq!((&second["previous_value"], &second["new_value"]), (&json!(["a"]), &json!(["a", "b"])));
    assert!(second["timestamp"].as_str().unwrap().ends_with('Z'));
    let events = fleet.events_named(&id, "state.changed").await;
    assert_eq!(events.len(), 3);
    assert_eq!(events[0]["transaction_id"], records[0]["transaction_id"]);
    fleet.end().await;
}

/// RS-29, RS-44, facts §6.2 case 3: a failed turn leaves the state of the turn before it.
#[tokio::test]
async fn a_failed_turn_rolls_its_changes_back() {
    let script = calls(vec![
        vec![("state_set", json!({"key": "a", "value": 1}))],
        vec![
            ("state_set", json!({"key": "a", "value": 2})),
            ("state_set", json!({"key": "b", "value": 3})),
            ("hang", json!({})),
        ],
    ]);
    let spec = "  state: {mode: session}\n  tools: [{type: http, name: hang}]\n";
    let fleet = desk(spec, script).await;
    let mut hanging = job(&json!(["go"]));
    hanging["options"] = json!({"timeout_ms": TIMEOUT_MS, "retry": {"max_attempts": 1}});
    let id = fleet.push(&hanging).await;
    fleet.tools.seen(1).await;
    PausedTimers::skip(Duration::from_millis(TIMEOUT_MS)).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["state"], "discarded", "{done:#}");
    assert_eq!(keys(&state(&fleet, &id).await), json!({"a": 1}));
    let rolled_back = fleet.events_named(&id, "state.rolled_back").await;
    assert_eq!(rolled_back[0]["changes"].as_array().unwrap().len(), 2, "{rolled_back:#?}");
    fleet.end().await;
}

/// Facts §6.2 case 3: `read_uncommitted` writes at once and keeps everything, also when the turn fails.
#[tokio::test]
async fn read_uncommitted_keeps_everything() {
    let script = calls(vec![vec![
        ("state_set", json!({"key": "a", "value": 1})),
        ("state_rollback", json!({})),
        ("hang", json!({})),
    ]]);
    let spec =
        "  state: {mode: session, isolation_level: read_uncommitted}\n  tools: [{type: http, name: hang}]\n";
    let fleet = desk(spec, script).await;
    let mut hanging = job(&json!(["go"]));
    hanging["options"] = json!({"timeout_ms": TIMEOUT_MS, "retry": {"max_attempts": 1}});
    let id = fleet.push(&hanging).await;
    fleet.tools.seen(1).await;
    PausedTimers::skip(Duration::from_millis(TIMEOUT_MS)).await;
    assert_eq!(fleet.settled(&id).await["state"], "discarded");
    assert_eq!(keys(&state(&fleet, &id).await), json!({"a": 1}));
    assert!(fleet.events_named(&id, "state.rolled_back").await.is_empty());
    fleet.end().await;
}

/// OSSA §3: partial rollback to a named checkpoint. The model receives bounds and errors, and the run continues.
#[tokio::test]
async fn the_model_rolls_back_and_receives_errors() {
    let script = calls(vec![vec![
        ("state_set", json!({"key": "a", "value": 1})),
        ("state_checkpoint", json!({})),
        ("state_set", json!({"key": "b", "value": 2})),
        ("state_rollback", json!({"checkpoint": "checkpoint-1"})),
        ("state_rollback", json!({"checkpoint": "nowhere"})),
        ("state_set", json!({"key": "k".repeat(1024 * 1024), "value": 1})),
        ("state_append", json!({"key": "a", "value": 1})),
        ("state_get", json!({"name": "a"})),
    ]]);
    let fleet = desk(SESSION, script).await;
    let id = fleet.push(&job(&json!(["go"]))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    assert_eq!(keys(&state(&fleet, &id).await), json!({"a": 1}));
    let told_to_model = outcomes(&fleet);
    assert_eq!(told_to_model[3]["rolled_back"], 1, "{told_to_model:#?}");
    for refused in &told_to_model[4..7] {
        assert!(refused.as_str().unwrap().starts_with("error STATE_ERROR"), "{refused}");
    }
    assert!(told_to_model[7].as_str().unwrap().starts_with("error SCHEMA_VIOLATION"));
    fleet.end().await;
}

/// A stateless agent has no such tools, and a call of one is an error for the model.
#[tokio::test]
async fn a_stateless_agent_keeps_nothing() {
    let fleet = desk(
        "  tools: [{type: http, name: search}]\n",
        calls(vec![vec![("state_set", json!({"key": "a", "value": 1}))]]),
    )
    .await;
    let id = fleet.push(&job(&json!(["go"]))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let offered = fleet.models.calls()[0].request["tools"].to_string();
    assert!(!offered.contains("state_set"), "{offered}");
    assert!(outcomes(&fleet)[0].as_str().unwrap().contains("no tool `state_set`"));
    assert_eq!(state(&fleet, &id).await["entries"], json!([]));
    fleet.end().await;
}

const SHARED: &str = "  state: {mode: long_running}\n  tools: [{type: http, name: search}]\n";

fn job_of(user: &str) -> Value {
    let mut job = job(&json!([user]));
    job["meta"]["user"] = json!({"id": user});
    job
}

/// State of mode `long_running` is available in the next engagement of the same user, and of no other.
#[tokio::test]
async fn state_survives_its_engagement_for_the_same_user() {
    let fleet = desk(SHARED, calls(vec![vec![("state_append", json!({"key": "visits", "value": 1}))]])).await;
    for (user, visits) in [("ann", 1), ("ann", 2), ("bob", 1)] {
        let id = fleet.push(&job_of(user)).await;
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        let shown = state(&fleet, &id).await;
        assert_eq!(
            (shown["entries"][0]["value"].as_array().unwrap().len(), &shown["shared"]),
            (visits, &json!(true))
        );
    }
    fleet.end().await;
}

/// RS-30, RS-46: two turns read the same state; the one that commits second runs again and loses no update.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_runs_the_turn_again() {
    let append = |value: i64| ("state_append".to_owned(), json!({"key": "visits", "value": value}));
    let script = move |request: &Value| {
        let text = request["messages"].to_string();
        let search = ("search".to_owned(), json!({"n": 1}));
        match model_server::outcomes(request) {
            0 if text.contains("slowly") => Reply::Calls(vec![append(1), search], (12, 7)),
            0 => Reply::Calls(vec![append(1)], (12, 7)),
            2 if text.contains("were rolled back") => Reply::Calls(vec![append(2)], (12, 7)),
            _ => Reply::text("done"),
        }
    };
    let mut fleet = Fleet::builder().workers(0).model(script).start().await;
    register(&fleet, SHARED).await;
    let gate = Gate::default();
    fleet.tools.hold(&gate);
    fleet.add_worker(4);
    let mut job = job_of("ann");
    job["args"] = json!(["slowly"]);
    let slow = fleet.push(&job).await;
    // Its turn has read the state, and waits for a tool before it commits its change.
    fleet.tools.seen(1).await;
    let quick = fleet.push(&job_of("ann")).await;
    assert_eq!(fleet.settled(&quick).await["state"], "completed");
    gate.open();
    let done = finish(&fleet, &slow).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let shown = state(&fleet, &slow).await;
    assert_eq!(shown["entries"][0]["value"], json!([1, 2]), "no update is lost: {shown:#}");
    let failed = fleet.events_named(&slow, "job.failed").await;
    assert_eq!((failed.len(), &failed[0]["code"]), (1, &json!("BACKEND_ERROR")), "{failed:#?}");
    assert_eq!(fleet.events_named(&slow, "state.rolled_back").await.len(), 1);
    let engagement = fleet.engagement_of(&slow).await;
    let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
    let status = [&audit["state"][0]["status"], &audit["state"][1]["status"]];
    assert_eq!(status, ["rolled_back", "committed"], "{:#}", audit["state"]);
    let turns: Vec<i64> = bodies(&fleet, &slow, "init")
        .await
        .iter()
        .map(|turn| turn["turn_number"].as_i64().unwrap())
        .collect();
    assert_eq!(turns, [1, 2, 3], "the turn that lost, the turn in its place, and the answer");
    fleet.end().await;
}

/// Waits for the end of a job, and moves the clock to its retries.
async fn finish(fleet: &Fleet, id: &str) -> Value {
    loop {
        let job = fleet.wait_for(id, &[JobState::Completed, JobState::Discarded, JobState::Retryable]).await;
        if job["state"] != "retryable" {
            return job;
        }
        fleet.clock.advance_ms(60_000);
        fleet.tick().await;
    }
}

/// Facts §6.2 case 4: killed around PERSIST, the state is committed once and no tool is called again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_around_persist_commits_once() {
    for point in ["1:outcome:after", "1:persist:before", "1:persist:after", "1:emit:before"] {
        let script = calls(vec![vec![
            ("state_append", json!({"key": "log", "value": "before"})),
            ("search", json!({"n": 1})),
            ("state_append", json!({"key": "log", "value": "after"})),
        ]]);
        let fleet = Fleet::builder().workers(0).model(script).start().await;
        register(&fleet, SESSION).await;
        let id = fleet.push(&job(&json!(["go"]))).await;
        crate::crash::killed(crate::crash::spawn(&fleet, 1, Some(point))).await;
        fleet.release_all().await;
        let second = crate::crash::spawn(&fleet, 1, None);
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded, JobState::Pending]).await;
        drop(second);
        assert_eq!(done["state"], "completed", "{point}: {done:#}");
        let shown = state(&fleet, &id).await;
        assert_eq!(
            (keys(&shown), &shown["version"]),
            (json!({"log": ["before", "after"]}), &json!(1)),
            "{point}"
        );
        assert_eq!(fleet.tools.calls().len(), 1, "{point}");
        assert_eq!(fleet.models.calls().len(), 2, "{point}");
        fleet.end().await;
    }
}

/// OSSA `state.storage.retention`: the scheduler deletes keys so long after their last write, and the conversation so
/// long after its end. The job and its usage stay.
#[tokio::test]
async fn state_and_conversation_are_deleted_after_their_retention() {
    for backend in Backend::ALL {
        let script = |request: &Value| match model_server::outcomes(request) {
            0 => Reply::call("state_set", json!({"key": "k", "value": 1, "ttl": 999_999_999})),
            _ => Reply::text("done"),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: keeper}\nspec:\n  role: You keep.\n  \
                        state: {mode: session, storage: {type: kv, retention: 2d}}\n";
        let body = fleet.register(manifest).await;
        assert!(body["warnings"].as_array().is_none_or(Vec::is_empty), "{body:#}");
        let job = json!({"type": "agent.keep", "args": ["go"], "meta": {"agent": "keeper"}});
        let id = fleet.push(&job).await;
        fleet.wait_for(&id, &[JobState::Completed]).await;
        let (messages, keys) = (turnstone_tests::journal::TEXTS, "SELECT count(*) FROM state_keys");
        fleet.clock.advance_ms(86_400_000);
        fleet.tick().await;
        assert!(
            fleet.number(messages).await > 0 && fleet.number(keys).await == 1,
            "half of the time is over"
        );
        fleet.clock.advance_ms(86_400_000);
        fleet
            .until("it is forgotten", async || {
                fleet.tick().await;
                fleet.number(messages).await == 0 && fleet.number(keys).await == 0
            })
            .await;
        assert_eq!(fleet.job(&id).await["result"], "done");
        fleet.end().await;
    }
}

/// OSSA `state.storage.retention`: each message is deleted so long after the end of its job, also when the engagement
/// continues. The other messages keep their positions.
#[tokio::test]
async fn messages_are_deleted_one_input_after_the_other() {
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).model(|_| Reply::text("done")).start().await;
        let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: keeper}\nspec:\n  role: You keep.\n  \
                        state: {storage: {retention: 2d}}\n";
        fleet.register(manifest).await;
        let send = async |id: &str, text: &str, run: Option<&Value>| {
            let mut request = json!({"input": text, "request_id": id});
            if let Some(run) = run {
                request["run_id"] = run.clone();
            }
            let (status, body) = fleet.post("/agents/keeper/process", &request).await;
            assert!(status.is_success(), "{body:#}");
            let place = format!("/agents/keeper/request/{id}");
            fleet.until("it answered", async || fleet.get(&place).await["status"] == "completed").await;
            fleet.get(&place).await["run_id"].clone()
        };
        let run = send("a", "the first input", None).await;
        let engagement = format!("/engagements/{}", run.as_str().unwrap());
        let listed = async |query: &str| fleet.get(&format!("{engagement}/messages{query}")).await;
        let positions = |page: &Value| -> Vec<i64> {
            page["messages"].as_array().unwrap().iter().map(|one| one["seq"].as_i64().unwrap()).collect()
        };
        let day = 86_400_000;
        fleet.clock.advance_ms(day * 3 / 2);
        send("b", "the second input", Some(&run)).await;
        assert_eq!(positions(&listed("").await), [1, 2, 3, 4]);
        fleet.clock.advance_ms(day);
        fleet
            .until("the first input is forgotten", async || {
                fleet.tick().await;
                !listed("").await.to_string().contains("the first input")
            })
            .await;
        let left = listed("").await;
        assert!(left.to_string().contains("the second input"), "{left}");
        assert_eq!(positions(&left), [3, 4]);
        let page = listed("?limit=1").await;
        assert_eq!(
            (positions(&page), &page["has_more"]),
            (vec![3], &json!(true)),
            "pages skip what is deleted"
        );
        send("c", "the third input", Some(&run)).await;
        let asked = fleet.models.calls()[2].request["messages"].to_string();
        assert!(asked.contains("the second input") && !asked.contains("the first input"), "{asked}");
        assert_eq!(positions(&listed("").await), [3, 4, 5, 6]);
        fleet.clock.advance_ms(day * 3);
        let texts = "SELECT count(*) FROM journal WHERE said LIKE '%input%' OR said LIKE '%done%'";
        fleet
            .until("everything is forgotten", async || {
                fleet.tick().await;
                fleet.number(texts).await == 0
            })
            .await;
        assert_eq!(listed("").await["messages"], json!([]));
        send("d", "the fourth input", Some(&run)).await;
        assert_eq!(positions(&listed("").await), [7, 8]);
        fleet.end().await;
    }
}

/// The anomalies that an isolation level allows between two concurrent turns on the same state.
struct Level {
    name: &'static str,
    /// A turn reads uncommitted changes of another one.
    dirty: bool,
    /// A turn that reads a key twice sees a commit in between.
    unrepeatable: bool,
    /// A turn commits a key that another one changed after it was read.
    lost_update: bool,
    /// A turn commits a key after another one changed a different key that it had read.
    write_skew: bool,
}

const LEVELS: [Level; 4] = [
    Level { name: "read_uncommitted", dirty: true, unrepeatable: true, lost_update: true, write_skew: true },
    Level { name: "read_committed", dirty: false, unrepeatable: true, lost_update: true, write_skew: true },
    Level {
        name: "repeatable_read",
        dirty: false,
        unrepeatable: false,
        lost_update: false,
        write_skew: true,
    },
    Level { name: "serializable", dirty: false, unrepeatable: false, lost_update: false, write_skew: false },
];

/// The slow turn reads `a`, changes `draft`, waits for a tool, reads `a` again and writes the key that its input
/// names. When it runs again, it repeats the write. The quick turn reads `draft` and changes `a`.
fn two_turns(request: &Value) -> Reply {
    let messages = request["messages"].as_array().unwrap();
    let input =
        messages.iter().find(|message| message["role"] == "user").unwrap()["content"].as_str().unwrap();
    let again = request["messages"].to_string().contains("were rolled back");
    let get = |key: &str| ("state_get".to_owned(), json!({"key": key}));
    let set = |key: &str, value: i64| ("state_set".to_owned(), json!({"key": key, "value": value}));
    let calls = match (input, model_server::outcomes(request)) {
        ("seed", 0) => vec![set("a", 0)],
        ("quick", 0) => vec![get("draft"), set("a", 1)],
        ("a" | "b", 0) => {
            vec![get("a"), set("draft", 9), ("search".to_owned(), json!({})), get("a"), set(input, 2)]
        }
        ("a" | "b", 5) if again => vec![set(input, 3)],
        _ => return Reply::text("done"),
    };
    Reply::Calls(calls, (12, 7))
}

/// Returns the outcomes of the calls of a job's first turn, from its journal.
async fn journal(fleet: &Fleet, id: &str) -> Vec<Value> {
    let engagement = fleet.engagement_of(id).await;
    let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
    let attempts = audit["attempts"].as_array().unwrap().iter();
    attempts.map(|attempt| attempt["outcome"]["output"].clone()).collect()
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn levels(backend: Backend) {
    for level in &LEVELS {
        let name = level.name;
        let fleet = Fleet::builder().on(backend).model(two_turns).start().await;
        let spec = format!(
            "  state: {{mode: long_running, isolation_level: {name}}}\n  tools: [{{type: http, name: search}}]\n"
        );
        register(&fleet, &spec).await;
        // The two keys are written for two users with separate states.
        for (key, commits) in [("a", level.lost_update), ("b", level.write_skew)] {
            let of_user = |input: &str| {
                let mut job = job(&json!([input]));
                job["meta"]["user"] = json!({"id": format!("user of {key}")});
                job
            };
            let seed = fleet.push(&of_user("seed")).await;
            assert_eq!(fleet.settled(&seed).await["state"], "completed");
            let (gate, before) = (Gate::default(), fleet.tools.calls().len());
            fleet.tools.hold(&gate);
            let slow = fleet.push(&of_user(key)).await;
            fleet.tools.seen(before + 1).await;
            let quick = fleet.push(&of_user("quick")).await;
            assert_eq!(fleet.settled(&quick).await["state"], "completed");
            gate.open();
            assert_eq!(finish(&fleet, &slow).await["state"], "completed");

            let draft = journal(&fleet, &quick).await[0]["value"].clone();
            assert_eq!(draft == json!(9), level.dirty, "{name} on {backend:?}: a dirty read saw {draft}");
            let read = journal(&fleet, &slow).await;
            assert_eq!(read[0]["value"], 0);
            let second = if level.unrepeatable { 1 } else { 0 };
            assert_eq!(read[3]["value"], second, "{name} on {backend:?}: the second read of a key");
            let lost = fleet.events_named(&slow, "state.rolled_back").await.len();
            assert_eq!(lost == 0, commits, "{name} on {backend:?}: a turn that writes {key} commits");
            let kept = keys(&state(&fleet, &slow).await);
            assert_eq!(kept[key], if commits { 2 } else { 3 }, "{name} on {backend:?}: {kept:#}");
            assert_eq!(kept["draft"].is_null(), !commits, "a lost turn leaves nothing: {kept:#}");
        }
        fleet.end().await;
    }
}

/// RS-30, RS-46: each level of isolation allows its anomalies between two concurrent turns, and prevents the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_level_of_isolation_allows_and_forbids_its_anomalies() {
    levels(Backend::Sqlite).await;
}

/// RS-46, RS-51: the same on PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: sixteen jobs beside each other on the second database"]
async fn each_level_of_isolation_holds_on_postgresql() {
    levels(Backend::Postgres).await;
}
