//! An engagement moves from one store to the other and is replayed from its record: without models and tools, bit for
//! bit.

use super::{exported, fork_ran, forked, imported, job, ran, runs_again, said, trip};
use crate::inputs::register;
use serde_json::{Value, json};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{Ids, JobId};
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Reply, model_server};
use turnstone_worker::rerun;

async fn bodies(fleet: &Fleet, engagement: &str) -> Vec<Value> {
    let path = format!("/engagements/{engagement}/checkpoints?bodies=true&per_page=100");
    fleet.get(&path).await["checkpoints"].as_array().cloned().unwrap()
}

/// SQLite → PostgreSQL and back: the records are equal, and the replay makes no calls.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn an_engagement_moves_between_stores_and_is_replayed_bit_for_bit() {
    let from = Fleet::builder().on(Backend::Sqlite).model(trip).start().await;
    let to = Fleet::builder().on(Backend::Postgres).model(trip).workers(0).start().await;
    let mut long = job(&"y".repeat(1_000_000));
    long["ext_agent_token_budget"] = json!(100_000_000);
    for job in [job("go"), long] {
        let engagement = ran(&from, &job).await;
        let document = exported(&from, &engagement).await;
        let (status, answer) = imported(&to, &document).await;
        assert_eq!((status, &answer["turns"]), (201, &json!(4)), "{answer:#}");
        assert_eq!(said(&to, &engagement).await, said(&from, &engagement).await);
        assert_eq!(bodies(&to, &engagement).await, bodies(&from, &engagement).await);
        let again = exported(&to, &engagement).await;
        let (requested, called) = (from.models.calls().len(), from.tools.calls().len());
        assert_eq!(runs_again(&document).await, (4, 28));
        assert_eq!(runs_again(&again).await, (4, 28));
        assert_eq!((from.models.calls().len(), from.tools.calls().len()), (requested, called));
        assert_eq!((to.models.calls().len(), to.tools.calls().len()), (0, 0));
        // A second import is refused.
        let (status, answer) = imported(&to, &document).await;
        assert_eq!((status, &answer["error"]["code"]), (409, &json!("conflict")), "{answer:#}");
    }
    assert_eq!(to.number("SELECT count(*) FROM jobs").await, 2);
    from.end().await;
    to.end().await;
}

/// Files are in the document. Those of a fork's past get ids of their own, so that fork and origin can both be imported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn files_move_with_their_engagement() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call(
            "save-artifact",
            json!({"name": "a.txt", "media_type": "text/plain", "content": "tides"}),
        ),
        _ => Reply::text("it is done"),
    };
    let from = Fleet::builder().on(Backend::Sqlite).model(script).start().await;
    let to = Fleet::builder().on(Backend::Postgres).workers(0).start().await;
    let capable = "capabilities: {save-artifact: {user_identity: false}}\n";
    from.register(oas("maker", capable)).await;
    let engagement =
        ran(&from, &json!({"type": "agent.make", "args": ["go"], "meta": {"agent": "maker"}})).await;
    let (fork, done) = fork_ran(&from, &engagement, json!({"at_turn": 2})).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let mut ids = Vec::new();
    for id in [&fork, &engagement] {
        let document = exported(&from, id).await;
        assert_eq!(imported(&to, &document).await.0, 201);
        let listed = to.get(&format!("/engagements/{id}/artifacts")).await["artifacts"].clone();
        assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed:#}");
        let file = &listed[0];
        assert_eq!((&file["name"], &file["bytes"]), (&json!("a.txt"), &json!(5)), "{file:#}");
        let url = file["url"].as_str().unwrap();
        let content = turnstone_tests::http::client().get(format!("{}{url}", to.url)).send().await.unwrap();
        assert_eq!((content.status().as_u16(), content.text().await.unwrap()), (200, "tides".to_owned()));
        let artifact = url.rsplit('/').next().unwrap().to_owned();
        ids.push(artifact);
    }
    assert_ne!(ids[0], ids[1]);
    let events = to.get(&format!("/engagements/{engagement}/events?limit=1000")).await;
    let mut events = events["events"].as_array().unwrap().iter();
    let made = events.find(|event| event["name"] == "artifact.generated").unwrap();
    assert!(made["data"].to_string().contains(&ids[1]), "{ids:?}: {made:#}");
    from.end().await;
    to.end().await;
}

/// An imported delegate keeps its depth, and is replayed at that depth.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn an_imported_delegate_keeps_its_depth() {
    let from = Fleet::builder().model(trip).start().await;
    let parent = from.push(&job("go")).await;
    from.settled(&parent).await;
    let mut child = job("go on");
    child["ext_agent_parent_id"] = json!(parent);
    let engagement = ran(&from, &child).await;
    let document = exported(&from, &engagement).await;
    let record = EngagementRecord::read(&document).unwrap();
    assert_eq!(record.job.engagement.unwrap().depth, 1);
    assert_eq!(runs_again(&document).await, (4, 28));
    let to = Fleet::builder().on(Backend::Postgres).workers(0).start().await;
    assert_eq!(imported(&to, &document).await.0, 201);
    assert_eq!(to.number("SELECT max(depth) FROM engagements").await, 1);
    from.end().await;
    to.end().await;
}

/// A document that is cut, changed, of another version or of another kind leaves no row.
#[tokio::test]
async fn damaged_documents_leave_nothing() {
    let fleet = Fleet::builder().model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let document = exported(&fleet, &engagement).await;
    let empty = Fleet::builder().workers(0).start().await;
    let lines: Vec<&str> = document.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    let without_a_line = [&lines[..4], &lines[5..]].concat().join("\n");
    let newer = document.replacen("\"turnstone_engagement\":1", "\"turnstone_engagement\":2", 1);
    for (damaged, word) in [
        (cut.as_str(), "not whole"),
        (&without_a_line, "not whole"),
        (&document.replace("booked", "cooked"), "digest"),
        (&newer, "version 2"),
        ("{}", "no engagement"),
        ("", "no engagement"),
    ] {
        let (status, answer) = imported(&empty, damaged).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(
            (400..=422).contains(&status) && (message.contains(word) || damaged.is_empty()),
            "{status}: {answer:#}"
        );
    }
    for table in ["jobs", "engagements", "journal", "tool_calls"] {
        assert_eq!(empty.number(&format!("SELECT count(*) FROM {table}")).await, 0, "{table}");
    }
    assert_eq!(imported(&empty, &document).await.0, 201);
    fleet.end().await;
    empty.end().await;
}

/// A record that contradicts its phases is reported, with the place.
#[tokio::test]
async fn a_changed_record_differs_where_it_was_changed() {
    let fleet = Fleet::builder().model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let record = EngagementRecord::read(&exported(&fleet, &engagement).await).unwrap();
    let mut body = record.clone();
    body.checkpoints[13].body["tool_calls"] = json!(7);
    let found = rerun(&body).await.unwrap().difference.unwrap();
    assert_eq!(
        (found.turn, found.phase.map(|phase| phase.to_string())),
        (2, Some("emit".to_owned())),
        "{found:?}"
    );
    let reported = (found.what.as_str(), found.recorded.as_deref(), found.rerun.as_deref());
    assert_eq!(reported, ("`tool_calls` of its checkpoint", Some("7"), Some("1")), "{found:?}");
    let mut outcome = record.clone();
    outcome.calls[0].outcome = None;
    let found = rerun(&outcome).await.unwrap().difference.unwrap();
    assert_eq!(
        (found.turn, found.phase.map(|phase| phase.to_string())),
        (1, Some("exec".to_owned())),
        "{found:?}"
    );
    let mut said = record.clone();
    said.messages[2].message.content = "something else".to_owned();
    let found = rerun(&said).await.unwrap().difference.unwrap();
    assert_eq!(
        (found.turn, found.recorded.as_deref()),
        (1, Some("the tool says \"something else\"")),
        "{found:?}"
    );
    let mut result = record;
    result.end.result = Some(turnstone_domain::RawJson::of(&json!("cooked")));
    assert_eq!(
        rerun(&result).await.unwrap().difference.map(|found| found.what).as_deref(),
        Some("the result")
    );
    fleet.end().await;
}

/// Forks, state and failures are replayed like other records.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn forks_state_and_failures_are_replayed() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("state_set", json!({"key": "a", "value": 1})),
        1 => Reply::call("state_append", json!({"key": "log", "value": "x"})),
        2 => Reply::call("nobody", json!({})),
        _ => Reply::text("done"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    register(&fleet, "  state: {mode: session}\n").await;
    let job =
        json!({"type": "agent.desk", "args": ["go"], "ext_agent_model": "m", "meta": {"agent": "desk"}});
    let engagement = ran(&fleet, &job).await;
    let document = exported(&fleet, &engagement).await;
    assert_eq!(runs_again(&document).await, (4, 28));
    let (fork, done) = fork_ran(&fleet, &engagement, json!({"at_turn": 3, "phase": "exec"})).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    assert_eq!(runs_again(&exported(&fleet, &fork).await).await, (4, 28));
    let empty = Fleet::builder().on(Backend::Postgres).workers(0).start().await;
    assert_eq!(imported(&empty, &document).await.0, 201);
    let path = format!("/engagements/{engagement}/state");
    assert_eq!(empty.get(&path).await["entries"], fleet.get(&path).await["entries"]);
    empty.end().await;
    fleet.end().await;
    // An engagement that has not ended is not exported. A failed one is, and its replay ends at the failure.
    let fleet = Fleet::builder().model(|_| Reply::call("search", json!({"q": 1}))).start().await;
    let mut job = super::job("go");
    job["ext_agent_token_budget"] = json!(900);
    let engagement = ran(&fleet, &job).await;
    let (turns, phases) = runs_again(&exported(&fleet, &engagement).await).await;
    assert!(turns >= 1 && phases >= 7 * turns, "{turns} {phases}");
    fleet.end().await;
}

/// Reviews that a document has as open are closed with its job, because they could not be answered.
#[tokio::test]
async fn open_reviews_of_a_document_are_closed() {
    let fleet = Fleet::builder().model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let mut record = EngagementRecord::read(&exported(&fleet, &engagement).await).unwrap();
    let review = json!({
        "id": "01900000-0000-7000-8000-000000000001", "engagement_id": engagement, "job_id": record.job.id, "turn": 1,
        "call_id": record.calls[0].call_id, "kind": "input", "reviewer": "ann", "question": {"name": "search"},
        "arguments_hash": "h", "state": "open", "created_at": 1, "deadline_at": 2, "remind_at": 2,
        "plan": [{"name": "ann", "members": ["ann"], "quorum": 1, "remind_every_ms": 1, "answer_within_ms": 1}],
    });
    record.reviews.push(serde_json::from_value(review).unwrap());
    let document = record.write().unwrap();
    for backend in Backend::ALL {
        let to = Fleet::builder().on(backend).workers(0).start().await;
        let (status, answer) = imported(&to, &document).await;
        assert_eq!(status, 201, "{answer:#}");
        assert_eq!(to.number("SELECT count(*) FROM reviews WHERE state = 'expired'").await, 1);
        to.tick().await;
        assert_eq!(to.number("SELECT count(*) FROM reviews WHERE reminders > 0").await, 0);
        to.end().await;
    }
    fleet.end().await;
}

/// A note about a call stays with it when ids are renamed, because they exist here already or because a fork has
/// calls of its own. No note becomes a call.
#[tokio::test]
async fn notes_stay_beside_their_calls() {
    let fleet = Fleet::builder().model(trip).start().await;
    let engagement = ran(&fleet, &job("go")).await;
    let mut record = EngagementRecord::read(&exported(&fleet, &engagement).await).unwrap();
    fleet.end().await;
    let call = record.calls[0].clone();
    let call_id = ToolCall::note_id(&call.call_id, 0);
    record.calls.push(ToolCall { call_id, position: 1_000, input: json!({"handle": 1}), ..call });
    let mut other = record.clone();
    other.job.id = JobId(SystemIds.next());
    other.job.engagement.as_mut().unwrap().id = SystemIds.next().into();
    let beside = "SELECT count(*) FROM tool_calls AS n JOIN tool_calls AS c \
                  ON n.call_id = c.call_id || '.note-0' AND n.job_seq = c.job_seq";
    for backend in Backend::ALL {
        let to = Fleet::builder().on(backend).workers(0).start().await;
        for record in [&record, &other] {
            let (status, answer) = imported(&to, &record.write().unwrap()).await;
            assert_eq!(status, 201, "{answer:#}");
        }
        assert_eq!(to.number(beside).await, 2, "{backend:?}");
        let point = json!({"at_turn": 1, "phase": "persist"});
        forked(&to, &engagement, point).await;
        assert_eq!(to.number(beside).await, 3, "{backend:?}");
        assert_eq!(to.number("SELECT count(*) FROM stubs").await, 1, "a note became a call on {backend:?}");
        to.end().await;
    }
}
