//! The earlier engagements of its user that an agent recalls.

use super::on_every_store;
use crate::crash;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// Answers with its last input; "look" calls a tool before, and "loop" calls one for ever.
pub fn parrot(request: &Value) -> Reply {
    let messages = request["messages"].as_array().unwrap();
    let requested = messages.iter().rev().find(|message| message["role"] == "user").unwrap();
    let requested = requested["content"].as_str().unwrap();
    match requested.split(' ').next() {
        Some("look") if model_server::outcomes(request) == 0 => Reply::call("search", json!({"q": "tides"})),
        Some("loop") => Reply::call("search", json!({"q": "again"})),
        Some("pass") if model_server::outcomes(request) == 0 => {
            Reply::call("kept", json!({"input": "hello"}))
        }
        _ => Reply::text(format!("answer to {requested}")),
    }
}

pub async fn fleet(backend: Backend) -> Fleet {
    Fleet::builder().on(backend).model(parrot).start().await
}

/// Returns a document with this lifespan whose agent may search.
pub fn retaining(name: &str, lifespan: &str) -> String {
    oas(name, &format!("capabilities: {{search: {{}}}}\n{lifespan}\n"))
}

const KEPT: &str = "lifespan: {retain_memory: true, short_circuit: 2}";

/// Enqueues an input for an agent and returns its job.
pub async fn push(
    fleet: &Fleet,
    agent: &str,
    user: Option<&str>,
    tenant: Option<&str>,
    text: &str,
) -> String {
    let mut meta = json!({"agent": agent});
    if let Some(user) = user {
        meta["user"] = json!({"id": user});
    }
    if let Some(tenant) = tenant {
        meta["tenant_id"] = json!(tenant);
    }
    let job = json!({"type": "agent.memory", "args": [text], "meta": meta, "options": {"retry": {"max_attempts": 1}}});
    fleet.push(&job).await
}

/// Runs an input of a known user to its end and returns its engagement.
pub async fn said(fleet: &Fleet, agent: &str, text: &str) -> String {
    let id = push(fleet, agent, Some("ann"), None, text).await;
    // A job that waits for a delegate is parked, and has not ended.
    fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    fleet.engagement_of(&id).await
}

/// Returns the messages of the last model call with this input, without the system prompt.
pub fn texts_sent(fleet: &Fleet, requested: &str) -> Vec<String> {
    let about = |request: &Value| {
        let messages = request["messages"].as_array().unwrap().clone();
        let last = messages.iter().rev().find(|message| message["role"] == "user").unwrap();
        (last["content"] == requested).then_some(messages)
    };
    let calls = fleet.models.calls();
    let messages =
        calls.iter().rev().find_map(|call| about(&call.request)).expect("the model was asked this");
    let of_conversation = messages.iter().filter(|message| message["role"] != "system");
    of_conversation.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// OAS-49, OAS-51: with `retain_memory: true` a new engagement begins with its user's earlier inputs and final
/// answers, the oldest first, and without tool calls. They are marked as recalled, and the events count them.
#[tokio::test]
async fn earlier_engagements_are_recalled() {
    on_every_store(async |backend| {
        let fleet = fleet(backend).await;
        let body = fleet.register(retaining("kept", KEPT)).await;
        assert!(!body["warnings"].to_string().contains("OAS-51"), "{body:#}");
        let first = said(&fleet, "kept", "look it up").await;
        assert!(fleet.engagement_events(&first, "memory.recalled").await.is_empty());
        let second = said(&fleet, "kept", "and then").await;
        assert_eq!(texts_sent(&fleet, "and then"), ["look it up", "answer to look it up", "and then"]);
        said(&fleet, "kept", "at last").await;
        let all = ["look it up", "answer to look it up", "and then", "answer to and then", "at last"];
        assert_eq!(texts_sent(&fleet, "at last"), all);

        assert_eq!(
            fleet.engagement_events(&second, "memory.recalled").await,
            [json!({"engagements": 1, "messages": 2})]
        );
        let page = fleet.get(&format!("/engagements/{second}/messages")).await;
        let mark = |message: &Value| (message["turn"].clone(), message["recalled_from"].clone());
        let marks: Vec<_> = page["messages"].as_array().unwrap().iter().map(mark).collect();
        let (recalled, own) = ((json!(0), json!(first)), (json!(1), Value::Null));
        assert_eq!(marks, [recalled.clone(), recalled, own.clone(), own], "{page:#}");
        let folder = turnstone_tests::scratch::folder();
        let shown = ["engagement", "show", second.as_str(), "--url", fleet.url.as_str()];
        let shown = crate::program::run(folder.path(), &shown, &[]).await;
        assert!(
            shown.stdout.contains(" after 1 turn (") && shown.stdout.contains("memory 1 exchange recalled"),
            "{shown:?}"
        );
        let object = fleet.get(&format!("/engagements/{second}/audit")).await;
        assert_eq!(
            object["engagement"]["history"]["_total"], 0,
            "the Engagement object has none of it: {object:#}"
        );

        fleet.end().await;
    })
    .await;
}

/// OAS-51: a further input of an engagement recalls nothing again.
#[tokio::test]
async fn a_further_input_recalls_nothing_again() {
    on_every_store(async |backend| {
        let mut fleet = fleet(backend).await;
        fleet.register(retaining("kept", KEPT)).await;
        said(&fleet, "kept", "first").await;
        fleet.stop_workers().await;
        let begun = push(&fleet, "kept", Some("ann"), None, "second").await;
        let engagement = fleet.engagement_of(&begun).await;
        let (status, taken) = fleet.post(&format!("/engagements/{engagement}"), &json!("third")).await;
        assert!(status.is_redirection() || status.is_success(), "{status}: {taken:#}");
        fleet.add_worker(1);
        let open = "SELECT count(*) FROM jobs WHERE state <> 'completed'";
        fleet.until("all inputs are answered", async || fleet.number(open).await == 0).await;
        let all = ["first", "answer to first", "second", "answer to second", "third"];
        assert_eq!(texts_sent(&fleet, "third"), all);
        assert_eq!(
            fleet.engagement_events(&engagement, "memory.recalled").await,
            [json!({"engagements": 1, "messages": 2})]
        );
        // Both of its inputs are recalled, as one engagement.
        let last = said(&fleet, "kept", "last").await;
        assert_eq!(texts_sent(&fleet, "last").len(), 7);
        assert_eq!(
            fleet.engagement_events(&last, "memory.recalled").await,
            [json!({"engagements": 2, "messages": 6})]
        );
        fleet.end().await;
    })
    .await;
}

/// OAS-50, OAS-51: memory belongs to a user, an agent and a tenant. It is not recalled for others, for anonymous
/// callers, for an engagement that another agent began, or where the document says `false` or nothing.
#[tokio::test]
async fn memory_is_not_recalled_for_others() {
    on_every_store(async |backend| {
        let fleet = fleet(backend).await;
        let parent = oas("parent", "capabilities: {kept: {}}\nlifespan: {retain_memory: true}\n");
        for text in [
            retaining("kept", KEPT),
            retaining("other", KEPT),
            retaining("fresh", "lifespan: {retain_memory: false}"),
            retaining("plain", ""),
            parent,
        ] {
            fleet.register(text).await;
        }
        let cases = [
            ("kept", Some("ann"), None),
            ("kept", Some("bob"), None),
            ("kept", Some("ann"), Some("acme")),
            ("kept", None, None),
            ("other", Some("ann"), None),
            ("fresh", Some("ann"), None),
            ("plain", Some("ann"), None),
        ];
        for (number, (agent, user, tenant)) in cases.into_iter().enumerate() {
            let text = format!("secret {number}");
            fleet.settled(&push(&fleet, agent, user, tenant, &text).await).await;
            assert_eq!(texts_sent(&fleet, &text), [text.as_str()], "{agent} {user:?} {tenant:?}");
        }
        for (number, (agent, user, tenant)) in cases.into_iter().enumerate() {
            let (before, text) = (format!("secret {number}"), format!("again {number}"));
            fleet.settled(&push(&fleet, agent, user, tenant, &text).await).await;
            let answer = format!("answer to {before}");
            let remembers = user.is_some() && !["fresh", "plain"].contains(&agent);
            let all = [before.as_str(), answer.as_str(), text.as_str()];
            let expected = if remembers { &all[..] } else { &all[2..] };
            assert_eq!(texts_sent(&fleet, &text), expected, "{agent} {user:?} {tenant:?}");
        }
        // The input of another agent is not the user's.
        said(&fleet, "parent", "pass it on").await;
        assert_eq!(texts_sent(&fleet, "hello"), ["hello"]);
        said(&fleet, "kept", "and now").await;
        assert!(
            !texts_sent(&fleet, "and now").iter().any(|text| text.contains("hello")),
            "and it is not recalled"
        );
        // Nor is anything recalled from before `retain_memory` was set, or after it was removed.
        fleet.register(retaining("plain", KEPT)).await;
        said(&fleet, "plain", "first").await;
        assert_eq!(texts_sent(&fleet, "first"), ["first"]);
        fleet.register(retaining("plain", "lifespan: {retain_memory: false}")).await;
        said(&fleet, "plain", "second").await;
        assert_eq!(texts_sent(&fleet, "second"), ["second"]);
        fleet.end().await;
    })
    .await;
}

/// OAS-43, OAS-46, OAS-51: an engagement that did not complete is not recalled: a failed one, and one that a
/// guardrail refused. One that passed other guardrails than today's is not recalled either.
#[tokio::test]
async fn refused_and_failed_engagements_are_not_recalled() {
    on_every_store(async |backend| {
        let fleet = fleet(backend).await;
        let guarded = |word: &str| {
            let assertion = format!("!(echo.output.contains('{word}'))");
            let guard = format!("guardrails:\n  output: {{tool_name: search, assertion: \"{assertion}\"}}\n");
            retaining("kept", &format!("{guard}{KEPT}"))
        };
        fleet.register(guarded("bad")).await;
        for (text, ends) in [("fine", "completed"), ("a bad word", "discarded"), ("loop", "discarded")] {
            let id = push(&fleet, "kept", Some("ann"), None, text).await;
            assert_eq!(fleet.settled(&id).await["state"], ends, "{text}");
        }
        said(&fleet, "kept", "well").await;
        assert_eq!(texts_sent(&fleet, "well"), ["fine", "answer to fine", "well"]);
        fleet.register(guarded("fine")).await;
        said(&fleet, "kept", "so").await;
        assert_eq!(texts_sent(&fleet, "so"), ["so"]);
        fleet.end().await;
    })
    .await;
}

/// OAS-51: memory is read once. A worker that resumes after a kill sends the model the same memory, whatever other
/// engagements ended since.
#[tokio::test]
async fn a_resumed_turn_has_the_same_memory() {
    on_every_store(async |backend| {
        let points: &[&str] = match backend {
            Backend::Sqlite => &["1:norm:after", "1:infer:before", "1:exec:after"],
            _ => &["1:exec:after"],
        };
        for point in points.iter().copied() {
            let fleet = Fleet::builder().on(backend).workers(0).model(parrot).start().await;
            fleet.register(retaining("kept", KEPT)).await;
            let worker = crash::spawn(&fleet, 4, None);
            said(&fleet, "kept", "first").await;
            drop(worker);
            fleet.release_all().await;

            let second = push(&fleet, "kept", Some("ann"), None, "look here").await;
            crash::killed(crash::spawn(&fleet, 4, Some(point))).await;
            let worker = crash::spawn(&fleet, 4, None);
            said(&fleet, "kept", "meanwhile").await;
            fleet.release_all().await;
            let done = fleet.wait_for(&second, &[JobState::Completed, JobState::Discarded]).await;
            drop(worker);
            assert_eq!(done["state"], "completed", "at {point}: {done:#}");
            let seen = texts_sent(&fleet, "look here");
            assert_eq!(seen[..3], ["first", "answer to first", "look here"], "at {point}");
            assert_eq!(
                texts_sent(&fleet, "meanwhile"),
                ["first", "answer to first", "meanwhile"],
                "at {point}"
            );
            fleet.end().await;
        }
    })
    .await;
}
