//! Documents that are too large, too deep, or made to be.

use super::{AGENT, errors, rules, run_errors};
use serde_json::{Value, json};

/// A flow of so many nodes in a row, each of which passes a value on.
fn row(nodes: usize) -> Value {
    let reference = |at: usize| json!({"$component_ref": format!("n{at}")});
    let node = |at: usize| {
        let class = match at {
            0 => "StartNode",
            at if at == nodes - 1 => "EndNode",
            _ => "ToolNode",
        };
        let id = format!("n{at}");
        let mut node = json!({"component_type": class, "id": id, "name": id});
        match class {
            "ToolNode" => node["tool"] = json!({"$component_ref": "t"}),
            _ => node["inputs"] = json!([{"title": "v", "type": "string"}]),
        }
        (id, node)
    };
    let edge = |at: usize| {
        json!({"component_type": "ControlFlowEdge", "id": format!("c{at}"), "name": "c",
               "from_node": reference(at - 1), "to_node": reference(at)})
    };
    let mut referenced: serde_json::Map<String, Value> = (0..nodes).map(node).collect();
    let value = json!([{"title": "v", "type": "string"}]);
    referenced.insert(
        "t".to_owned(),
        json!({"component_type": "ServerTool", "id": "t", "name": "t", "inputs": value, "outputs": value}),
    );
    json!({
        "component_type": "Flow", "id": "f", "name": "f", "agentspec_version": "25.4.1",
        "start_node": reference(0),
        "nodes": (0..nodes).map(reference).collect::<Vec<_>>(),
        "control_flow_connections": (1..nodes).map(edge).collect::<Vec<_>>(),
        "$referenced_components": referenced,
    })
}

#[test]
fn a_flow_of_thousands_of_nodes_is_read_or_refused_in_bounded_time() {
    assert_eq!(run_errors(&row(200).to_string()), [""; 0]);
    assert_eq!(run_errors(&row(3000).to_string()), [""; 0]);
    // More values than are read.
    assert_eq!(rules(&row(20_000).to_string()), ["OAS-A19"]);
}

/// AS-17: components nest so deep and no deeper, even along references.
#[test]
fn components_nest_so_deep_and_no_deeper() {
    let nested = |levels: usize| {
        let mut referenced = serde_json::Map::new();
        for level in 0..levels {
            let id = format!("a{level}");
            let manager = if level + 1 == levels { "last".to_owned() } else { format!("a{}", level + 1) };
            referenced.insert(
                id.clone(),
                json!({"component_type": "ManagerWorkers", "id": id, "name": id,
                       "group_manager": {"$component_ref": manager}, "workers": [{"$component_ref": "other"}]}),
            );
        }
        for id in ["last", "other"] {
            let llm = json!({"component_type": "OpenAiConfig", "id": format!("{id}-llm"), "name": "m", "model_id": "m"});
            let agent = json!({"component_type": "Agent", "id": id, "name": id, "system_prompt": "", "llm_config": llm});
            referenced.insert(id.to_owned(), agent);
        }
        json!({"$component_ref": "a0", "$referenced_components": referenced, "agentspec_version": "25.4.2"})
            .to_string()
    };
    assert_eq!(rules(&nested(60)), [""; 0]);
    assert!(rules(&nested(70)).iter().all(|rule| rule == "AS-17") && !rules(&nested(70)).is_empty());
    let deep = format!("{AGENT}metadata: {}1{}\n", "[".repeat(100), "]".repeat(100));
    assert_eq!(rules(&deep), ["OAS-A19"]);
}

/// AS-14, AS-17: references that repeat one another do not grow without bound.
#[test]
fn references_that_repeat_one_another_are_refused() {
    let mut referenced = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({"$component_ref": format!("v{}", level + 1)});
        referenced.insert(format!("v{level}"), json!([next, next, next, next]));
    }
    referenced.insert("v30".to_owned(), json!("x"));
    let document = json!({
        "component_type": "RemoteTool", "id": "t", "name": "t", "url": "http://a.example", "http_method": "POST",
        "data": {"$component_ref": "v0"}, "$referenced_components": referenced, "agentspec_version": "26.3.1",
    });
    assert_eq!(rules(&document.to_string()), ["AS-17"]);
}

#[test]
fn thousands_of_mistakes_are_reported_in_bounded_time() {
    let tool = |at: usize| json!({"component_type": "ServerTool", "id": "same", "name": at});
    let tools: Vec<Value> = (0..5000).map(tool).collect();
    let document = json!({"component_type": "Agent", "id": "a", "name": "a", "tools": tools});
    let found = errors(&document.to_string());
    assert_eq!(found.len(), 100);
}

/// AS-17: a signature is bounded, and so is what nodes repeat of one another's.
#[test]
fn signatures_are_bounded() {
    let names: Vec<String> = (0..1001).map(|at| format!("{{{{p{at}}}}}")).collect();
    let prompt = json!({"component_type": "OutputMessageNode", "id": "n", "name": "n", "message": names.join(" "),
                        "agentspec_version": "26.3.1"});
    assert_eq!(rules(&prompt.to_string()), ["AS-17"]);
    let inputs: Vec<Value> = (0..1001).map(|at| json!({"title": format!("p{at}")})).collect();
    let tool = json!({"component_type": "ServerTool", "id": "t", "name": "t", "inputs": inputs});
    assert_eq!(rules(&with_version(&tool)), ["AS-17"]);
    let large: Vec<Value> = (0..2000).map(|at| json!(at)).collect();
    let mut document = row(700);
    document["$referenced_components"]["t"]["inputs"] =
        json!([{"title": "v", "type": "string", "examples": large}]);
    assert_eq!(rules(&document.to_string()), ["AS-17"]);
}

fn with_version(component: &Value) -> String {
    let mut document = component.clone();
    document["agentspec_version"] = json!("26.3.1");
    document.to_string()
}

#[test]
fn text_that_is_no_document_is_refused() {
    for (source, rule) in [
        ("component_type: Agent\n- x", "YAML"),
        ("component_type: Agent\ncomponent_type: Flow\nname: a", "OAS-A19"),
        ("{\"component_type\": \"Agent\"", "YAML"),
        ("[component_type]", "AS-15"),
        ("component_type", "AS-15"),
    ] {
        assert!(rules(source).contains(&rule.to_owned()), "{source}: {:?}", rules(source));
    }
}
