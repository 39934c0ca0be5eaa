//! The canonical document of what was read.

use super::{AGENT, FLOW, read, with};
use crate::agent_spec::export;
use serde_json::{Value, json};

/// AGS-09: what is exported can be read.
#[test]
fn an_export_reads_again_and_is_the_same() {
    let toolbox = "toolboxes: [{component_type: MCPToolBox, id: b, name: b, client_transport: {component_type: StdioTransport, id: t, name: t, command: serve, args: [a]}, tool_filter: [find]}]";
    let rich = with(&with(AGENT, "name: desk", &format!("name: desk\n{toolbox}")), "25.4.1", "26.3.1");
    let summed = "transforms: [{component_type: ConversationSummarizationTransform, id: s, name: s, max_num_characters: 100, min_num_messages: 1, llm: {component_type: VllmConfig, id: sl, name: sl, model_id: m, url: http://model.example}}]";
    let summed = with(&with(AGENT, "name: desk", &format!("name: desk\n{summed}")), "25.4.1", "26.1.2");
    for source in [AGENT, FLOW, rich.as_str(), summed.as_str()] {
        let document = export(&read(source));
        let again = export(&read(&document.to_string()));
        assert_eq!(document, again, "{source}");
    }
}

#[test]
fn an_export_says_the_first_version_that_has_everything() {
    let exported = |source: &str| export(&read(source));
    let plain = exported(&with(AGENT, "25.4.1", "26.3.1"));
    assert_eq!(plain["agentspec_version"], "25.4.1");
    // Fields of later versions are left out; they have their defaults.
    assert!(plain.get("human_in_the_loop").is_none() && plain["llm_config"].get("retry_policy").is_none());
    let later = with(AGENT, "25.4.1", "26.3.1");
    let later = exported(&with(&later, "name: desk", "name: desk\nhuman_in_the_loop: false"));
    assert_eq!((&later["agentspec_version"], &later["human_in_the_loop"]), (&json!("25.4.2"), &json!(false)));
    let keys: Vec<&String> = later.as_object().unwrap().keys().take(6).collect();
    assert_eq!(keys, ["component_type", "id", "name", "description", "metadata", "inputs"]);
}

#[test]
fn what_is_used_twice_is_written_once() {
    let document = export(&read(FLOW));
    let referenced = document["$referenced_components"].as_object().unwrap();
    let mut ids: Vec<&str> = referenced.keys().map(String::as_str).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["ask", "end", "start"]);
    assert_eq!(document["start_node"], json!({"$component_ref": "start"}));
    assert_eq!(referenced["ask"]["llm_config"]["model_id"], "small");
    assert_eq!(referenced["ask"]["inputs"], json!([{"type": "string", "title": "city"}]));
    assert_eq!(document["control_flow_connections"][0]["from_branch"], Value::Null);
}

/// AGS-04: an export holds references.
#[test]
fn a_secret_is_exported_as_a_reference() {
    let source = with(AGENT, "url: http://model.example", "url: http://model.example, api_key: sk-1");
    let document = export(&read(&with(&source, "25.4.1", "25.4.2")));
    assert_eq!(document["llm_config"]["api_key"], json!({"$component_ref": "l.api_key"}));
    assert!(!document.to_string().contains("sk-1"));
}
