//! The events of the Agent Protocol for one of ours: none, one or several. Pure: the facts that it needs are read
//! before.

use crate::engagements::answering::APPROVE;
use serde_json::{Map, Value, json};
use turnstone_domain::artifact::{Artifact, path};
use turnstone_domain::event::Event;
use turnstone_domain::{ArtifactId, EventName, Timestamp};

/// The part of a run that an agent plays.
#[derive(Clone, Debug)]
pub(super) struct RunAgent {
    /// The agent's name.
    pub agent: String,
    /// The number of agents between it and the caller.
    pub depth: i64,
    /// The request it works for, as the caller knows it.
    pub request: String,
    /// The id of the user for whom the caller asked.
    pub caller: String,
}

/// The facts that are read beside an event, because the event does not carry them.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// The model's text in this turn.
    pub text: Option<String>,
    /// The model that is called.
    pub model: Option<String>,
    /// True if the caller asked for more detail about the model calls of its own agent.
    pub debug: bool,
    /// The whole result of the job that ended.
    pub result: Option<Value>,
    /// True if no piece of the answer was published before the job ended, because it had to pass a check first
    /// (AP-A17).
    pub held_back: bool,
    /// The whole output of the call that ended.
    pub output: Option<Value>,
    /// The arguments of the call that ended, when no `tool.called` event was published for it: the call was refused, or a
    /// recorded call replaces it.
    pub untold: Option<Value>,
    /// True if the caller does not receive its questions, because it is a guarded agent (OAS-43).
    pub guarded: bool,
    /// True if the caller is one of several reviewers.
    pub caller_is_asked: bool,
    /// The files of the job that ended, when no event contained them before.
    pub files: Vec<Artifact>,
}

/// An event without its number and its run: those are set when it is written.
pub(super) type Draft = Map<String, Value>;

/// Returns the events for the readers of a run. Only the caller's own agent begins and ends requests: the ends of its
/// delegates are results of calls.
pub(super) fn drafts(part: &RunAgent, event: &Event, beside: &Beside) -> Vec<Draft> {
    let own = part.depth == 0;
    let say = |kind: &str, role: &str, fields: Value| draft(part, event.at, kind, role, fields);
    match event.name {
        EventName::PhaseCompleted => match event.data["phase"].as_str() {
            Some("resol") => {
                let mut fields = json!({"model": beside.model, "answer": answer(event)});
                detail(&mut fields, event, beside);
                vec![say("completion_call", "system", fields)]
            }
            Some("infer") => answered(part, event, beside),
            _ => Vec::new(),
        },
        EventName::ToolCalled => vec![tool_call(part, event, &event.data["input"])],
        EventName::ToolCompleted => {
            let output = beside.output.as_ref().unwrap_or(&event.data["output"]);
            let fields = json!({"call_id": event.data["call_id"], "function_name": as_text(&event.data["name"]),
                                "text_result": as_text(output)});
            let call = beside.untold.as_ref().map(|input| tool_call(part, event, input));
            let text = output.as_str().filter(|text| !text.is_empty()).map(|text| {
                let fields = json!({"call_id": event.data["call_id"], "function_name": as_text(&event.data["name"]),
                                    "content": text});
                say("tool_text_output", "tool", fields)
            });
            call.into_iter().chain(text).chain([say("tool_result", "tool", fields)]).collect()
        }
        // The event of a file that a guardrail holds back does not name the file.
        EventName::ArtifactGenerated if event.data.get("file").is_some() => {
            let data = &event.data;
            let id = ArtifactId(as_text(&data["artifact_id"]));
            let fields = json!({"artifact_id": id, "call_id": data["call_id"], "name": data["file"], "url": path(&id),
                                "mime_type": data["media_type"], "bytes": data["bytes"], "sha256": data["sha256"]});
            vec![say("artifact_generated", "assistant", fields)]
        }
        EventName::ToolFailed => {
            let fields = json!({"call_id": event.data["call_id"], "function_name": as_text(&event.data["name"]),
                                "code": event.data["code"], "content": as_text(&event.data["message"])});
            let call = beside.untold.as_ref().map(|input| tool_call(part, event, input));
            call.into_iter().chain([say("tool_error", "tool", fields)]).collect()
        }
        EventName::InputRequested if !beside.guarded => {
            let exposes = event.data.get("exposes").cloned().unwrap_or_else(|| json!({}));
            let fields = json!({"call_id": event.data["call_id"], "request_keys": event.data["request_keys"],
                                "exposes": exposes});
            vec![say("wait_for_input", "system", fields)]
        }
        EventName::ReviewOpened
            if !beside.guarded
                && (beside.caller_is_asked || event.data["reviewer"] == part.caller.as_str()) =>
        {
            let name = event.data["name"].as_str().map_or_else(String::new, |name| format!(" of `{name}`"));
            let kind = as_text(&event.data["kind"]);
            let keys = json!({APPROVE: format!("Do you agree to the {kind}{name}? true or false")});
            let fields = json!({"review_id": event.data["review_id"], "request_keys": keys});
            vec![say("wait_for_input", "system", fields)]
        }
        EventName::JobCompleted => {
            let (text, exposes) = result(beside.result.as_ref().unwrap_or(&event.data["result"]));
            let held = Some(&text).filter(|_| beside.held_back).map(as_text).filter(|text| !text.is_empty());
            let files = beside.files.iter().map(|file| say("artifact_generated", "assistant", of_file(file)));
            let said = held.map(|text| say("text_output", "assistant", json!({"content": text})));
            let mut drafts: Vec<Draft> = files.chain(said).collect();
            if own {
                let fields = ending("success", &text, Value::Null, exposes);
                drafts.push(say("request_completed", "system", fields));
            }
            drafts
        }
        EventName::JobDiscarded | EventName::JobExpired if own => {
            let code = event.data["code"].as_str().unwrap_or("JOB_EXPIRED");
            let message = event.data["message"].as_str().unwrap_or("the request expired before it ended");
            let error = json!({"code": code, "message": message});
            vec![say("request_completed", "system", ending("error", &Value::Null, error, json!({})))]
        }
        EventName::JobCancelled if own => {
            vec![say("request_completed", "system", ending("canceled", &Value::Null, Value::Null, json!({})))]
        }
        _ => Vec::new(),
    }
}

/// Returns its approximate size in bytes.
pub(super) fn size(draft: &Draft) -> usize {
    let of = |value: &Value| match value {
        Value::String(text) => text.len(),
        Value::Array(_) | Value::Object(_) => value.to_string().len(),
        _ => 8,
    };
    draft.iter().map(|(name, value)| name.len() + of(value)).sum()
}

/// Returns the two events that a request begins with.
pub(super) fn beginning(part: &RunAgent, at: Timestamp, input: Option<&str>) -> [Draft; 2] {
    [
        draft(part, at, "request_started", "system", json!({})),
        draft(part, at, "chat_request", "user", json!({"input": input.unwrap_or_default()})),
    ]
}

fn draft(part: &RunAgent, at: Timestamp, kind: &str, role: &str, fields: Value) -> Draft {
    let mut draft = Map::new();
    draft.insert("type".to_owned(), kind.into());
    draft.insert("agent".to_owned(), part.agent.as_str().into());
    draft.insert("role".to_owned(), role.into());
    draft.insert("depth".to_owned(), part.depth.into());
    draft.insert("timestamp".to_owned(), at.to_rfc3339().into());
    draft.insert("request_id".to_owned(), part.request.as_str().into());
    if let Value::Object(fields) = fields {
        draft.extend(fields);
    }
    draft
}

/// Adds the data of the phase to the event of a model call, when the caller asked for it.
fn detail(fields: &mut Value, event: &Event, beside: &Beside) {
    if beside.debug {
        fields["detail"] = event.data.clone();
    }
}

/// Returns the call that an event is about.
fn tool_call(part: &RunAgent, event: &Event, input: &Value) -> Draft {
    let fields = json!({"call_id": event.data["call_id"], "function_name": as_text(&event.data["name"]),
                        "args": arguments(input)});
    draft(part, event.at, "tool_call", "assistant", fields)
}

fn answered(part: &RunAgent, event: &Event, beside: &Beside) -> Vec<Draft> {
    let data = &event.data;
    let usage =
        json!({"input": data["tokens_in"], "output": data["tokens_out"], "cached": data["tokens_cached"]});
    let answer = answer(event);
    let mut fields = json!({"model": data["model"], "finish_reason": data["finish_reason"], "usage": usage,
                            "answer": answer});
    detail(&mut fields, event, beside);
    let mut drafts = vec![draft(part, event.at, "completion_result", "assistant", fields)];
    if let Some(text) = beside.text.as_deref().filter(|text| !text.is_empty()) {
        drafts.push(draft(
            part,
            event.at,
            "text_output",
            "assistant",
            json!({"content": text, "answer": answer}),
        ));
    }
    drafts
}

/// Returns the fields that the call to a model, its result, its text and the pieces of its text share.
fn answer(event: &Event) -> Value {
    let engagement = event.engagement_id.as_ref();
    engagement.map_or(Value::Null, |engagement| format!("{engagement}:{}", event.turn).into())
}

fn of_file(file: &Artifact) -> Value {
    json!({"artifact_id": file.id, "call_id": file.call_id, "name": file.name, "url": file.path(),
           "mime_type": file.media_type, "bytes": file.bytes, "sha256": file.digest})
}

/// Returns the arguments as an object: any other value that the model wrote becomes the member `input`.
fn arguments(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        Value::Null => json!({}),
        other => json!({"input": other}),
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the result as a text, and beside it the values that the agent exposes (OAS-47). Any other JSON is text and
/// nothing beside it.
pub(in super::super) fn result(result: &Value) -> (Value, Value) {
    match result {
        Value::Object(fields) if fields.get("text").is_some_and(Value::is_string) => {
            let mut exposes = fields.clone();
            let text = exposes.shift_remove("text").unwrap_or_default();
            // An answer in JSON is there as a text already.
            let written = exposes.get("output").map(Value::to_string);
            if written.is_some() && text.as_str() == written.as_deref() {
                exposes.shift_remove("output");
            }
            (text, Value::Object(exposes))
        }
        other => (as_text(other).into(), json!({})),
    }
}

fn ending(reason: &str, result: &Value, error: Value, exposes: Value) -> Value {
    json!({"finish_reason": reason, "result": result, "error": error, "exposes": exposes})
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::JobId;

    fn part(depth: i64) -> RunAgent {
        RunAgent { agent: "desk".into(), depth, request: "req-1".into(), caller: "ada".into() }
    }

    fn event(name: EventName, data: Value) -> Event {
        let job_id = JobId("j".into());
        Event { seq: 7, name, job_id, engagement_id: None, turn: 1, data, at: Timestamp(1_000) }
    }

    fn kinds(depth: i64, name: EventName, data: Value, beside: &Beside) -> Vec<String> {
        let drafts = drafts(&part(depth), &event(name, data), beside);
        drafts.iter().map(|draft| draft["type"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn an_answer_is_its_result_and_its_text() {
        let data = json!({"phase": "infer", "model": "m", "tokens_in": 3, "finish_reason": "stop"});
        let said = Beside { text: Some("hello".into()), ..Beside::default() };
        assert_eq!(
            kinds(0, EventName::PhaseCompleted, data.clone(), &said),
            ["completion_result", "text_output"]
        );
        let silent = Beside { text: Some(String::new()), ..Beside::default() };
        assert_eq!(kinds(0, EventName::PhaseCompleted, data, &silent), ["completion_result"]);
        assert!(kinds(0, EventName::PhaseCompleted, json!({"phase": "norm"}), &silent).is_empty());
    }

    /// Seed: `ToolTextOutput` is the text that a tool generated; other output is a result alone.
    #[test]
    fn a_text_of_a_tool_precedes_its_result() {
        let data = |output: Value| json!({"call_id": "c", "name": "look", "output": output});
        let none = Beside::default();
        let drafted = drafts(&part(0), &event(EventName::ToolCompleted, data(json!("a text"))), &none);
        assert_eq!(
            (&drafted[0]["type"], &drafted[0]["content"]),
            (&json!("tool_text_output"), &json!("a text"))
        );
        assert_eq!(drafted[1]["type"], "tool_result");
        assert_eq!(kinds(0, EventName::ToolCompleted, data(json!({"a": 1})), &none), ["tool_result"]);
    }

    #[test]
    fn exposed_values_stand_beside_the_text() {
        let data = json!({"result": {"text": "done", "ticket": 7}});
        let drafts = drafts(&part(0), &event(EventName::JobCompleted, data), &Beside::default());
        assert_eq!(
            (&drafts[0]["finish_reason"], &drafts[0]["result"], &drafts[0]["exposes"]),
            (&json!("success"), &json!("done"), &json!({"ticket": 7}))
        );
        let json = json!({"text": "{\"a\":1}", "output": {"a": 1}, "ticket": 7});
        assert_eq!(result(&json), (json!("{\"a\":1}"), json!({"ticket": 7})));
    }

    #[test]
    fn only_the_callers_own_agent_ends_a_request() {
        let none = Beside::default();
        let done = || json!({"result": "x"});
        assert!(kinds(1, EventName::JobCompleted, done(), &none).is_empty());
        let held = Beside { held_back: true, ..Beside::default() };
        assert_eq!(kinds(1, EventName::JobCompleted, done(), &held), ["text_output"]);
        assert_eq!(kinds(0, EventName::JobCompleted, done(), &held), ["text_output", "request_completed"]);
        assert_eq!(kinds(0, EventName::JobCancelled, json!({}), &none), ["request_completed"]);
        assert_eq!(kinds(1, EventName::ToolFailed, json!({"message": "no"}), &none), ["tool_error"]);
    }

    /// AP §4.2, AP-A16: the caller answers reviews that are addressed to it, of its own agent and of delegates. Behind
    /// an output guardrail no question is published.
    #[test]
    fn a_callers_question_is_sent_to_it() {
        let none = Beside::default();
        let review = |who: &str| json!({"review_id": "r", "kind": "input", "name": "book", "reviewer": who});
        assert_eq!(kinds(0, EventName::ReviewOpened, review("ada"), &none), ["wait_for_input"]);
        assert!(kinds(0, EventName::ReviewOpened, review("bob"), &none).is_empty());
        let among = Beside { caller_is_asked: true, ..Beside::default() };
        assert_eq!(kinds(0, EventName::ReviewOpened, review("auditors"), &among), ["wait_for_input"]);
        let requested = || json!({"call_id": "c", "request_keys": {"city": "Where?"}});
        let drafted = drafts(&part(0), &event(EventName::InputRequested, requested()), &none);
        assert_eq!(
            (&drafted[0]["type"], &drafted[0]["request_keys"]["city"]),
            (&json!("wait_for_input"), &json!("Where?"))
        );
        assert_eq!(kinds(1, EventName::InputRequested, requested(), &none), ["wait_for_input"]);
        assert_eq!(kinds(1, EventName::ReviewOpened, review("ada"), &none), ["wait_for_input"]);
        let guarded = Beside { guarded: true, ..Beside::default() };
        assert!(kinds(1, EventName::InputRequested, requested(), &guarded).is_empty());
        assert!(kinds(1, EventName::ReviewOpened, review("ada"), &guarded).is_empty());
    }

    /// Seed: `ArtifactGenerated` has name, id (facts §3.3: `artifact_id`), url and mime_type, and is published when it
    /// may be.
    #[test]
    fn a_file_is_announced_when_it_is_available() {
        let none = Beside::default();
        let data = json!({"artifact_id": "art_1", "call_id": "c", "bytes": 3, "file": "a.txt", "media_type": "text/plain"});
        let drafted = drafts(&part(1), &event(EventName::ArtifactGenerated, data), &none);
        assert_eq!(
            (&drafted[0]["type"], &drafted[0]["url"]),
            (&json!("artifact_generated"), &json!("/artifacts/art_1"))
        );
        assert_eq!((&drafted[0]["name"], &drafted[0]["mime_type"]), (&json!("a.txt"), &json!("text/plain")));
        let held = json!({"artifact_id": "art_1", "call_id": "c", "bytes": 3});
        assert!(kinds(0, EventName::ArtifactGenerated, held, &none).is_empty());
    }

    #[test]
    fn arguments_are_always_an_object() {
        assert_eq!(arguments(&json!("{broken")), json!({"input": "{broken"}));
        assert_eq!(arguments(&json!({"a": 1})), json!({"a": 1}));
    }
}
