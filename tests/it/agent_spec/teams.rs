//! Swarms, and managers with workers: messages, handoffs, private conversations.

use super::{answer, awaiting, llm_of, part, property, run, said};
use serde_json::{Value, json};
use turnstone_tests::{Backend, Fleet, Reply, model_server};

fn member(fleet: &Fleet, name: &str, tools: Value) -> Value {
    let fields = json!({"llm_config": llm_of(fleet, &format!("{name}-llm")), "system_prompt": format!("You are {name}."),
                        "description": format!("the {name}"), "tools": tools});
    part("Agent", name, fields)
}

fn swarm(fleet: &Fleet, handoff: &str) -> Value {
    let named = |name: &str| json!({"$component_ref": name});
    let fields = json!({
        "first_agent": named("front"), "handoff": handoff,
        "relationships": [[named("front"), named("math")], [named("math"), named("front")]],
        "$referenced_components": {"front": member(fleet, "front", json!([])), "math": member(fleet, "math", json!([]))},
    });
    part("Swarm", "pair", fields)
}

fn role(request: &Value) -> String {
    request["messages"][0]["content"].as_str().unwrap_or_default().to_owned()
}

/// AGS-37: The agent that the conversation was handed to sees all of it, and keeps it.
#[tokio::test]
async fn a_handoff_gives_the_conversation_to_the_other_agent() {
    let script = |request: &Value| match role(request).contains("front") {
        true => Reply::call("handoff_conversation", json!({"recipient": "math"})),
        false if request["messages"].to_string().contains("Who are you?") => Reply::text("I am math."),
        false => Reply::text("It is 4."),
    };
    for handoff in ["optional", "always"] {
        let fleet = Fleet::builder().model(script).start().await;
        let job = run(&fleet, swarm(&fleet, handoff), json!({})).await;
        assert_eq!(awaiting(&fleet, &job).await["prompt"], "It is 4.", "{job:#}");
        let calls = fleet.models.calls();
        let tools = model_server::offered(&calls[0].request);
        assert_eq!(tools.contains(&"send_message"), handoff == "optional");
        let again = answer(&fleet, &job, json!({"user_input": "Who are you?"})).await;
        assert_eq!(awaiting(&fleet, &again).await["prompt"], "I am math.");
        fleet.end().await;
    }
}

/// AGS-38: Messages between agents are private, and the answer is the outcome of the call.
#[tokio::test]
async fn a_message_to_another_agent_is_answered_in_private() {
    let script = |request: &Value| match (role(request).contains("front"), request["messages"].to_string()) {
        (true, messages) if messages.contains("It is four") => Reply::text("4, says math."),
        (true, _) => Reply::call("send_message", json!({"recipient": "math", "message": "two and two?"})),
        (false, _) => Reply::text("It is four"),
    };
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let job = run(&fleet, swarm(&fleet, "never"), json!({})).await;
        assert_eq!(awaiting(&fleet, &job).await["prompt"], "4, says math.", "{job:#}");
        let calls = fleet.models.calls();
        assert_eq!(model_server::offered(&calls[0].request), ["send_message"]);
        let requested = &calls[1].request["messages"];
        assert_eq!(
            (requested.as_array().unwrap().len(), &requested[1]["content"]),
            (2, &json!("two and two?"))
        );
        let texts: Vec<Value> = said(&fleet, &job).await.into_iter().filter(|one| one[0] != "tool").collect();
        assert_eq!(texts.last().unwrap()[1], "4, says math.");
        assert!(!json!(texts).to_string().contains("two and two?"), "{texts:?}");
        fleet.end().await;
    }
}

/// AGS-39: A worker uses its own tools, and the manager sees its answer only.
#[tokio::test]
async fn a_manager_gives_work_to_two_workers_at_once() {
    let script = |request: &Value| {
        let (role, messages) = (role(request), request["messages"].to_string());
        match role.as_str() {
            "You are boss." if messages.contains("seen by looker") => Reply::text("All is done."),
            "You are boss." => Reply::Calls(
                vec![
                    ("send_message".to_owned(), json!({"recipient": "adder", "message": "add"})),
                    ("send_message".to_owned(), json!({"recipient": "looker", "message": "look"})),
                    ("send_message".to_owned(), json!({"recipient": "nobody", "message": "rest"})),
                ],
                (12, 7),
            ),
            "You are adder." => Reply::text("added by adder"),
            _ if messages.contains("\"tool\"") => Reply::text("seen by looker"),
            _ => Reply::call("search", json!({"q": "sky"})),
        }
    };
    let fleet = Fleet::builder().model(script).start().await;
    let search = part(
        "ServerTool",
        "search",
        json!({"inputs": [property("q", "string")], "outputs": [property("r", "string")]}),
    );
    let fields = json!({"group_manager": member(&fleet, "boss", json!([])),
                        "workers": [member(&fleet, "adder", json!([])), member(&fleet, "looker", json!([search]))]});
    let job = run(&fleet, part("ManagerWorkers", "team", fields), json!({})).await;
    assert_eq!(awaiting(&fleet, &job).await["prompt"], "All is done.", "{job:#}");
    assert_eq!(fleet.tools.calls_of("search"), 1);
    let last = fleet.models.calls().pop().unwrap().request["messages"].to_string();
    for text in ["added by adder", "seen by looker", "There is no recipient `nobody`"] {
        assert!(last.contains(text), "{text}: {last}");
    }
    fleet.end().await;
}
