//! The events of the Agent Protocol for one of ours: none, one or several. Pure: the facts that it needs are read
//! before.

use serde_json::{Map, Value, json};
use turnstone_domain::artifact::{Artifact, path};
use turnstone_domain::event::{CallFailure, CallOutput, Event, EventBody, Inferred};
use turnstone_domain::question::APPROVE;
use turnstone_domain::{ArtifactId, CallId, Phase, Timestamp};

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
    let Some(body) = event.body() else { return Vec::new() };
    match body {
        EventBody::PhaseCompleted(done) => match done.phase {
            Phase::Resol => {
                let mut fields = json!({"model": beside.model, "answer": answer(event)});
                detail(&mut fields, event, beside);
                vec![say("completion_call", "system", fields)]
            }
            Phase::Infer => answered(part, event, done.inferred.as_ref(), beside),
            _ => Vec::new(),
        },
        EventBody::ToolCalled(call) => {
            vec![tool_call(part, event, &call.call_id, call.name, &call.input.unwrap_or_default())]
        }
        EventBody::ToolCompleted(CallOutput { call_id, name, output, .. }) => {
            let output = beside.output.clone().or(output).unwrap_or_default();
            let name = name.unwrap_or_default();
            let fields = json!({"call_id": call_id, "function_name": name, "text_result": as_text(&output)});
            let text = output.as_str().filter(|text| !text.is_empty()).map(|text| {
                let fields = json!({"call_id": call_id, "function_name": name, "content": text});
                say("tool_text_output", "tool", fields)
            });
            let untold = beside.untold.as_ref();
            let call = untold.map(|input| tool_call(part, event, &call_id, Some(name.clone()), input));
            call.into_iter().chain(text).chain([say("tool_result", "tool", fields)]).collect()
        }
        // The event of a file that a guardrail holds back does not name the file.
        EventBody::ArtifactGenerated(file) if file.file.is_some() => {
            let id = ArtifactId(file.artifact_id);
            let fields = json!({"artifact_id": id, "call_id": file.call_id, "name": file.file, "url": path(&id),
                                "mime_type": file.media_type, "bytes": file.bytes, "sha256": file.sha256});
            vec![say("artifact_generated", "assistant", fields)]
        }
        EventBody::ToolFailed(CallFailure { failure, call_id, name, .. }) => {
            let fields = json!({"call_id": call_id, "function_name": name.as_deref().unwrap_or_default(),
                                "code": failure.code, "content": failure.message.unwrap_or_default()});
            let untold = beside.untold.as_ref();
            let call = untold.map(|input| tool_call(part, event, &call_id, name, input));
            call.into_iter().chain([say("tool_error", "tool", fields)]).collect()
        }
        EventBody::InputRequested(question) if !beside.guarded => {
            let fields = json!({"call_id": question.call_id, "request_keys": question.request_keys,
                                "exposes": question.exposes.unwrap_or_default()});
            vec![say("wait_for_input", "system", fields)]
        }
        EventBody::ReviewOpened(review)
            if !beside.guarded && (beside.caller_is_asked || review.reviewer == part.caller) =>
        {
            let name = review.name.map_or_else(String::new, |name| format!(" of `{name}`"));
            let keys = json!({APPROVE: format!("Do you agree to the {}{name}? true or false", review.kind.as_str())});
            let fields = json!({"review_id": review.review_id, "request_keys": keys});
            vec![say("wait_for_input", "system", fields)]
        }
        EventBody::JobCompleted(done) => {
            let reported = || done.result.and_then(|result| result.parse().ok()).unwrap_or_default();
            let (text, exposes) = result(&beside.result.clone().unwrap_or_else(reported));
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
        EventBody::JobDiscarded(failure) if own => {
            vec![failed(part, event, &failure.code, failure.message.as_deref().unwrap_or_default())]
        }
        EventBody::JobExpired(_) if own => {
            vec![failed(part, event, "JOB_EXPIRED", "the request expired before it ended")]
        }
        EventBody::JobCancelled(_) if own => {
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

/// Returns the end of a request that failed.
fn failed(part: &RunAgent, event: &Event, code: &str, message: &str) -> Draft {
    let error = json!({"code": code, "message": message});
    draft(part, event.at, "request_completed", "system", ending("error", &Value::Null, error, json!({})))
}

/// Returns the call that an event is about.
fn tool_call(part: &RunAgent, event: &Event, call: &CallId, name: Option<String>, input: &Value) -> Draft {
    let fields =
        json!({"call_id": call, "function_name": name.unwrap_or_default(), "args": arguments(input)});
    draft(part, event.at, "tool_call", "assistant", fields)
}

/// Returns the result of INFER; a node of a flow may end without a call of a model.
fn answered(part: &RunAgent, event: &Event, inferred: Option<&Inferred>, beside: &Beside) -> Vec<Draft> {
    let tokens = |of: fn(&Inferred) -> i64| inferred.map(of);
    let usage = json!({"input": tokens(|of| of.tokens_in), "output": tokens(|of| of.tokens_out),
                       "cached": tokens(|of| of.tokens_cached)});
    let answer = answer(event);
    let mut fields = json!({"model": inferred.map(|of| &of.model), "usage": usage, "answer": answer,
                            "finish_reason": inferred.map(|of| of.finish_reason)});
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
    use turnstone_domain::{EventName, JobId};

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
        let data = json!({"phase": "infer", "duration_ms": 1, "model": "m", "provider": "p", "tokens_in": 3, "tokens_out": 1,
                          "tokens_cached": 0, "tokens_reasoning": 0, "finish_reason": "stop"});
        let said = Beside { text: Some("hello".into()), ..Beside::default() };
        assert_eq!(
            kinds(0, EventName::PhaseCompleted, data.clone(), &said),
            ["completion_result", "text_output"]
        );
        let silent = Beside { text: Some(String::new()), ..Beside::default() };
        assert_eq!(kinds(0, EventName::PhaseCompleted, data, &silent), ["completion_result"]);
        assert!(
            kinds(0, EventName::PhaseCompleted, json!({"phase": "norm", "duration_ms": 1}), &silent)
                .is_empty()
        );
    }

    /// Seed: `ToolTextOutput` is the text that a tool generated; other output is a result alone.
    #[test]
    fn a_text_of_a_tool_precedes_its_result() {
        let data =
            |output: Value| json!({"call_id": "c", "name": "look", "duration_ms": 1, "output": output});
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
        let data = json!({"attempt": 1, "duration_ms": 1, "result": {"text": "done", "ticket": 7}});
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
        let done = || json!({"attempt": 1, "duration_ms": 1, "result": "x"});
        assert!(kinds(1, EventName::JobCompleted, done(), &none).is_empty());
        let held = Beside { held_back: true, ..Beside::default() };
        let refused =
            json!({"code": "C", "message": "no", "type": "t", "recoverable": false, "call_id": "c"});
        assert_eq!(kinds(1, EventName::JobCompleted, done(), &held), ["text_output"]);
        assert_eq!(kinds(0, EventName::JobCompleted, done(), &held), ["text_output", "request_completed"]);
        assert_eq!(
            kinds(0, EventName::JobCancelled, json!({"previous_state": "active"}), &none),
            ["request_completed"]
        );
        assert_eq!(kinds(1, EventName::ToolFailed, refused, &none), ["tool_error"]);
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
