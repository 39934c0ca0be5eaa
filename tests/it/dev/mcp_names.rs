//! MCP tools whose names are no OpenAgentSpec capability: each has a capability name that follows RFC 1123.

use super::{Dev, run_in};
use serde_json::{Value, json};
use std::path::Path;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/tools/mcp_server.py");
const SCRIPT: &str = "
rules:
  - when: {tools_include: [papers.search-papers], tool_results: 0}
    answer: {tool_calls: [{name: papers.search-papers, arguments: {text: owls}}]}
  - answer: {text: done}
";

fn agent(name: &str, capability: &str) -> String {
    format!(
        "kind: \"openagentspec:v1/agent\"\nname: {name}\ndescription: An agent that reads.\nintent: You read.\n\
         owner: tests\ncapabilities:\n  {capability}:\n    user_identity: false\n"
    )
}

fn set_up(folder: &Path, more: &str) {
    let settings = format!(
        "[providers.script]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_provider = 'script'\n\
         default_model = 'm'\n[agents]\ndir = 'agents'\n[mcp.papers]\ncommand = ['python3', '{SERVER}', 'papers']\n\
         connect_timeout_ms = 60000\n{more}"
    );
    std::fs::create_dir_all(folder.join("agents")).unwrap();
    for (file, text) in [
        ("turnstone.toml", settings.as_str()),
        ("script.yaml", SCRIPT),
        ("agents/reader.yaml", &agent("reader", "papers.search-papers")),
        ("agents/torn.yaml", &agent("torn", "papers.get-paper")),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
}

/// Returns the events of a job of this agent, to its end.
async fn done_by(dev: &Dev, agent: &str) -> Vec<Value> {
    let pushed =
        dev.run(&["job", "push", "--type", "agent.read", "--agent", agent, "--args", "[\"go\"]"]).await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    dev.events(pushed.stdout.trim(), |name, _| name == "job.completed").await
}

/// OAS-04: a capability has no underscore; the tool of an MCP server has one.
#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn a_capability_names_an_mcp_tool_with_an_underscore_and_a_collision_is_refused() {
    let folder = turnstone_tests::scratch::folder();
    set_up(folder.path(), "");
    let dev = Dev::start(folder.path(), &[]).await;
    let events = done_by(&dev, "reader").await;
    let called = events.iter().find(|event| event["name"] == "tool.completed").expect("a call");
    assert_eq!(called["data"]["name"], "papers.search-papers", "{called:#}");
    assert!(called["data"].to_string().contains("found owls"), "{called:#}");

    let events = done_by(&dev, "torn").await;
    let refused = events.iter().find(|event| event["name"] == "tool.unavailable").expect("a refusal");
    let why = refused["data"]["message"].as_str().unwrap();
    for part in ["`get_paper`", "`get-paper`", "`tools`"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let checked = dev.run(&["mcp", "check", "-o", "json"]).await.json();
    let capability = |name: &str| {
        let tools = checked[0]["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap()["capability"].clone()
    };
    assert_eq!(capability("papers.search_papers"), json!("papers.search-papers"), "{checked:#}");
    assert_eq!(capability("papers.get_paper"), Value::Null, "{checked:#}");
}

const LOOK_UP: &str = "
rules:
  - when: {tools_include: [look_up], tool_results: 0}
    answer: {tool_calls: [{name: look_up, arguments: {}}]}
  - answer: {text: done}
";

/// OAS-04: OJS jobs and OSSA manifests may have a tool with an underscore; an OpenAgentSpec document that names it as a
/// capability or as a guardrail is refused.
#[tokio::test]
async fn a_configured_tool_with_an_underscore_is_none_of_openagentspec() {
    let folder = turnstone_tests::scratch::folder();
    let tools = turnstone_tests::ToolServer::start().await;
    let settings = format!(
        "[providers.script]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_provider = 'script'\n\
         default_model = 'm'\n[tools.look_up]\ndescription = 'Looks it up.'\nurl = '{}/look_up'\nallow_private = true\n",
        tools.url
    );
    std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
    std::fs::write(folder.path().join("script.yaml"), LOOK_UP).unwrap();
    let dev = Dev::start(folder.path(), &[]).await;
    let guarded = "kind: \"openagentspec:v1/agent\"\nname: guarded\ndescription: An agent that reads.\nintent: You read.\n\
                   owner: tests\ncapabilities: {}\nguardrails:\n  input: {tool_name: look_up, assertion: \"true\"}\n";
    for (document, place) in
        [(agent("reader", "look_up"), "capabilities"), (guarded.to_owned(), "guardrails.input.tool_name")]
    {
        std::fs::write(folder.path().join("agent.yaml"), &document).unwrap();
        let ran = dev.run(&["agent", "apply", "agent.yaml", "-o", "json"]).await;
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            ran.code != Some(0) && said.contains("OAS-04") && said.contains("look_up"),
            "{place}: {ran:?}"
        );
    }
    let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: keeper}\nspec:\n  role: You keep.\n  \
                    tools: [{type: http, name: look_up}]\n";
    std::fs::write(folder.path().join("agent.yaml"), manifest).unwrap();
    let ran = dev.run(&["agent", "apply", "agent.yaml"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let called = done_by(&dev, "keeper").await;
    let called = called.iter().find(|event| event["name"] == "tool.completed").expect("a call");
    assert_eq!(called["data"]["name"], "look_up", "{called:#}");
}

/// The agent of docs/TOOLS.md.
fn example() -> String {
    let page = include_str!("../../../docs/TOOLS.md");
    let examples = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    examples.filter(|text| text.contains("name: librarian\n")).collect()
}

#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn the_example_of_the_page_calls_its_tool() {
    let folder = turnstone_tests::scratch::folder();
    set_up(folder.path(), "tools = ['search_papers', 'get_paper']\n");
    std::fs::write(folder.path().join("agents/librarian.yaml"), example()).unwrap();
    let dev = Dev::start(folder.path(), &[]).await;
    let events = done_by(&dev, "librarian").await;
    let called = events.iter().find(|event| event["name"] == "tool.completed").expect("a call");
    assert!(called["data"].to_string().contains("found owls"), "{called:#}");
}

#[tokio::test]
async fn the_list_shows_capability_names_and_servers_that_share_one_are_refused() {
    let folder = turnstone_tests::scratch::folder();
    set_up(folder.path(), "tools = ['search_papers', 'Get.Paper_']\n");
    let listed = run_in(folder.path(), &["mcp", "list"]).await;
    assert!(listed.stdout.contains("papers.search-papers, papers.get.paper"), "{listed:?}");
    set_up(folder.path(), "[mcp.Papers]\ncommand = ['python3']\n");
    let refused = run_in(folder.path(), &["config", "check"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stdout.contains("[mcp.Papers]") && refused.stdout.contains("[mcp.papers]"),
        "{refused:?}"
    );
}
