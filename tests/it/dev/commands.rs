//! Every command against a `turnstone dev`: its output for programs and its exit code.

use super::{Dev, run_in};
use serde_json::{Value, json};
use std::path::Path;
use turnstone_tests::ToolServer;

const SCRIPT: &str = "
rules:
  - when: {user_contains: slowly}
    answer: {text: late, delay_ms: 600000}
  - when: {tools_include: [book], tool_results: 0}
    answer: {tool_calls: [{name: book, arguments: {price: 640}}]}
  - when: {tools_include: [book]}
    answer: {text: booked}
  - answer: {text: 'You said ${last_user}.'}
";

fn agent(name: &str, capability: &str) -> String {
    format!(
        "kind: \"openagentspec:v1/agent\"\nname: {name}\ndescription: An agent that books.\nintent: You book.\n\
         owner: tests\ncapabilities:\n  {capability}:\n    user_identity: false\n    input_restriction:\n      \
         assertion: recent[\"{capability}\"].inputs.price <= 800\n      require_review: manager\n"
    )
}

/// A folder with a configuration, a script, and agents, one of which is invalid.
fn set_up(folder: &Path, tools: &ToolServer) {
    let settings = format!(
        "[providers.script]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_provider = 'script'\n\
         default_model = 'm'\n[agents]\ndir = 'agents'\n[tools.book]\ndescription = 'Book'\nurl = '{}/book'\n\
         allow_private = true\n",
        tools.url
    );
    let agents = folder.join("agents");
    std::fs::create_dir(&agents).unwrap();
    for (file, text) in [
        ("turnstone.toml", settings.as_str()),
        ("script.yaml", SCRIPT),
        ("agents/booker.yaml", &agent("booker", "book")),
        ("agents/broken.yaml", &agent("broken", "no-such-tool")),
        ("second.yaml", &agent("second", "book")),
        ("misspelt.yaml", &agent("misspelt", "book").replace("assertion", "asertion")),
        ("job.json", r#"{"type": "agent.echo", "args": ["hi"], "ext_agent_model": "m"}"#),
        ("hot.json", r#"{"type": "agent.echo", "args": [], "ext_agent_temperature": 3}"#),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
}

/// A `dev` with agents and a tool of its own.
pub(super) async fn dev() -> (Dev, ToolServer, tempfile::TempDir) {
    let folder = turnstone_tests::scratch::folder();
    let tools = ToolServer::start().await;
    set_up(folder.path(), &tools);
    (Dev::start(folder.path(), &[]).await, tools, folder)
}

async fn stop(mut dev: Dev) {
    dev.signal("INT");
    assert_eq!(dev.ended().await, Some(0));
    dev.database().check().await;
}

#[tokio::test]
async fn jobs_are_pushed_read_watched_listed_and_cancelled() {
    let (dev, _tools, _folder) = dev().await;
    let pushed = dev.run(&["job", "push", "job.json", "-o", "json"]).await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    let id = pushed.json()["id"].as_str().unwrap().to_owned();
    let watched = dev.run(&["job", "watch", &id, "-o", "json"]).await;
    assert_eq!(watched.code, Some(0), "{watched:?}");
    let events = watched.lines();
    assert_eq!((&events[0]["name"], &events[0]["seq"]), (&json!("job.enqueued"), &json!(1)));
    assert_eq!(events.last().unwrap()["name"], "job.completed");
    let got = dev.run(&["job", "get", &id, "-o", "json"]).await;
    assert_eq!((got.code, &got.json()["result"]), (Some(0), &json!("You said hi.")));
    let table = dev.run(&["job", "get", &id]).await;
    assert!(table.stdout.contains("You said hi.") && !table.stdout.contains('\u{1b}'), "{table:?}");
    let followed = dev.run(&["job", "push", "job.json", "--watch"]).await;
    assert!(followed.code == Some(0) && followed.stdout.contains("You said hi."), "{followed:?}");

    let slow =
        ["job", "push", "--type", "agent.echo", "--args", "[\"slowly\"]", "--agent", "booker", "-o", "ids"];
    let slow = dev.run(&slow).await;
    assert_eq!(slow.code, Some(0), "{slow:?}");
    let slow = slow.stdout.trim().to_owned();
    dev.events(&slow, |name, _| name == "job.started").await;
    let listed = dev.run(&["job", "list", "--state", "active", "-o", "ids"]).await;
    assert_eq!((listed.code, listed.stdout.trim()), (Some(0), slow.as_str()));
    let listed = dev.run(&["job", "list", "-o", "json"]).await;
    assert_eq!(listed.json().as_array().unwrap().len(), 3);
    assert_eq!(dev.run(&["job", "cancel", &slow, "-o", "json"]).await.code, Some(0));
    assert_eq!(dev.run(&["job", "get", &slow, "-o", "json"]).await.json()["state"], "cancelled");
    assert_eq!(dev.run(&["job", "watch", &slow]).await.code, Some(1), "it did not complete");
    let again = dev.run(&["job", "cancel", &slow]).await;
    assert!(again.code == Some(5) && again.stderr.contains("cancelled"), "{again:?}");
    stop(dev).await;
}

#[tokio::test]
async fn a_refused_command_gives_the_reason_and_its_exit_code() {
    let (dev, _tools, folder) = dev().await;
    let unknown = "0190a7b2-0000-7000-8000-000000000000";
    for (arguments, code, words) in [
        (&["job", "get", unknown][..], 4, "not_found"),
        (&["job", "watch", unknown], 4, "not_found"),
        (&["job", "cancel", unknown], 4, "not_found"),
        (&["review", "approve", unknown], 4, "not_found"),
        (&["job", "push", "hot.json"], 1, "ext_agent_temperature"),
        (&["job", "push", "--type", "agent.x", "--agent", "nobody"], 1, "nobody"),
        (&["job", "push", "absent.json"], 2, "absent.json"),
        (&["job", "push", "script.yaml"], 2, "not JSON"),
        (&["job", "list", "--state", "asleep"], 2, "asleep"),
        (&["job"], 2, "Usage"),
        (&["agent", "apply", "misspelt.yaml"], 1, "asertion"),
    ] {
        let ran = dev.run(arguments).await;
        assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
        let said = ran.stderr + &ran.stdout;
        assert!(said.contains(words), "{arguments:?} does not mention {words}: {said}");
    }
    let (free, url) = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (address.to_string(), format!("http://{address}"))
    };
    let alone = run_in(folder.path(), &["job", "list", "--url", &url]).await;
    assert!(alone.code == Some(1) && alone.stderr.contains(&free), "{alone:?}");
    assert!(alone.stderr.contains("turnstone dev"), "{alone:?}");
    stop(dev).await;
}

#[tokio::test]
async fn agents_are_checked_registered_and_listed() {
    let (mut dev, _tools, _folder) = dev().await;
    let warned = dev.warns("broken.yaml").await;
    assert!(warned.contains("agents/broken.yaml:7:3: error[") && warned.contains("no-such-tool"), "{warned}");
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
    };
    let listed = dev.run(&["agent", "list", "-o", "json"]).await;
    assert_eq!(names(&listed.json()), ["booker"], "a broken file does not keep the others out");
    let linted = dev.run(&["agent", "lint", "second.yaml", "misspelt.yaml", "-o", "json"]).await;
    assert_eq!(linted.code, Some(1), "{linted:?}");
    let problems = linted.json();
    assert!(problems.as_array().unwrap().iter().any(|problem| {
        problem["file"] == "misspelt.yaml" && problem["line"] == 10 && problem["severity"] == "error"
    }));
    assert_eq!(dev.run(&["agent", "lint", "second.yaml"]).await.code, Some(0));
    let applied = dev.run(&["agent", "apply", "second.yaml", "-o", "json"]).await;
    assert_eq!((applied.code, &applied.json()["name"]), (Some(0), &json!("second")));
    let listed = dev.run(&["agent", "list", "-o", "ids"]).await;
    assert_eq!(listed.stdout, "booker\nsecond\n");
    let kept = dev.run(&["agent", "apply", "--tenant", "acme", "--tenant", "beta", "second.yaml"]).await;
    assert!(kept.stdout.contains("second is registered, for acme, beta alone"), "{kept:?}");
    let again = dev.run(&["agent", "apply", "second.yaml", "-o", "json"]).await.json();
    assert_eq!((&again["changed"], &again["tenants"]), (&json!(false), &json!(["acme", "beta"])));
    assert!(dev.run(&["agent", "list"]).await.stdout.contains("acme, beta"));
    let shown = dev.run(&["agent", "show", "second", "-o", "json"]).await.json();
    assert_eq!(shown["tenants"], json!(["acme", "beta"]));
    let opened = dev.run(&["agent", "apply", "--all-tenants", "second.yaml", "-o", "json"]).await.json();
    assert_eq!(opened["tenants"], Value::Null);
    assert_eq!(dev.run(&["agent", "apply", "--tenant", "a,b", "second.yaml"]).await.code, Some(2));
    stop(dev).await;
}

#[tokio::test]
async fn reviews_are_listed_and_answered() {
    let (dev, tools, _folder) = dev().await;
    let push = ["job", "push", "--type", "agent.book", "--agent", "booker", "--args", "[\"book it\"]"];
    for (answer, event) in [("approve", "job.completed"), ("reject", "job.discarded")] {
        let pushed = dev.run(&push).await;
        assert_eq!(pushed.code, Some(0), "{pushed:?}");
        let id = pushed.stdout.trim();
        dev.events(id, |name, _| name == "job.parked").await;
        let listed = dev.run(&["review", "list", "-o", "json"]).await.json();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed:#}");
        assert_eq!((&listed[0]["reviewer"], &listed[0]["job_id"]), (&json!("manager"), &json!(id)));
        let review = listed[0]["id"].as_str().unwrap();
        let nobodys = dev.run(&["review", answer, review]).await;
        assert!(nobodys.code == Some(2) && nobodys.stderr.contains("--by NAME"), "{nobodys:?}");
        let said = ["review", answer, review, "--by", "manager", "--reason", "because", "-o", "json"];
        let answered = dev.run(&said).await;
        assert_eq!(answered.code, Some(0), "{answered:?}");
        assert_eq!(answered.json()["decided_by"], "manager", "{answered:?}");
        dev.events(id, |name, _| name == event).await;
        let late = dev.run(&["review", answer, review, "--by", "manager"]).await;
        assert_eq!(late.code, Some(5), "{late:?}");
    }
    assert_eq!(tools.calls().len(), 1, "only the approved call was made");
    stop(dev).await;
}

#[tokio::test]
async fn the_configuration_is_shown_and_checked() {
    let folder = turnstone_tests::scratch::folder();
    let tools = ToolServer::start().await;
    set_up(folder.path(), &tools);
    let shown = run_in(folder.path(), &["config", "show", "-o", "json"]).await;
    let list = shown.json();
    let of = |key: &str| list.as_array().unwrap().iter().find(|shown| shown["key"] == key).unwrap().clone();
    assert_eq!(
        of("models.default_model"),
        json!({"key": "models.default_model", "value": "m", "source": "file turnstone.toml"})
    );
    assert_eq!(of("log.format"), json!({"key": "log.format", "value": "pretty", "source": "default"}));
    let checked = run_in(folder.path(), &["config", "check", "-o", "json"]).await;
    let said = checked.json();
    assert_eq!((checked.code, &said["ok"], &said["problems"]), (Some(0), &json!(true), &json!([])), "{said}");
    std::fs::remove_file(folder.path().join("script.yaml")).unwrap();
    let checked = run_in(folder.path(), &["config", "check", "-o", "json"]).await;
    assert!(checked.code == Some(2) && checked.stdout.contains("script.yaml"), "{checked:?}");
    std::fs::write(folder.path().join("turnstone.toml"), "[log]\nfilter = 'a=loudly'\n").unwrap();
    let checked = run_in(folder.path(), &["config", "check"]).await;
    assert!(checked.code == Some(2) && checked.stderr.contains("a=loudly"), "{checked:?}");
    std::fs::write(folder.path().join("turnstone.toml"), "[log]\nformat = 'xml'\n").unwrap();
    let checked = run_in(folder.path(), &["config", "check"]).await;
    assert!(checked.code == Some(2) && checked.stderr.contains("turnstone.toml:2"), "{checked:?}");
}

/// Documents of Agent Spec are checked, together with the parts that they share; agents are not run yet.
#[tokio::test]
async fn agent_spec_documents_are_checked_and_not_run() {
    let (dev, _tools, folder) = dev().await;
    let main = "component_type: Agent\nid: a\nname: desk\nsystem_prompt: You help.\nllm_config: {$component_ref: model}\nagentspec_version: 25.4.1\n";
    let parts =
        "$referenced_components:\n  model: {component_type: OpenAiConfig, id: m, name: m, model_id: small}\n";
    for (file, text) in [("spec.yaml", main), ("parts.yaml", parts)] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let together = dev.run(&["agent", "lint", "spec.yaml", "parts.yaml"]).await;
    assert_eq!(together.code, Some(0), "{together:?}");
    let alone = dev.run(&["agent", "lint", "spec.yaml", "-o", "json"]).await;
    assert_eq!(alone.code, Some(1), "{alone:?}");
    let problems = alone.json();
    assert_eq!(
        (&problems[0]["rule"], &problems[0]["line"], &problems[0]["column"]),
        (&json!("AS-11"), &json!(5), &json!(13))
    );
    let applied = dev.run(&["agent", "apply", "spec.yaml"]).await;
    let said = format!("{}{}", applied.stdout, applied.stderr);
    assert!(applied.code == Some(1) && said.contains("AS-11") && said.contains("spec.yaml:5:13"), "{said}");
    assert_eq!(dev.run(&["agent", "list", "-o", "ids"]).await.stdout, "booker\n");
    stop(dev).await;
}

/// The parts and the registry of a flow are sent with it; its export has references and no secret.
#[tokio::test]
async fn a_flow_is_applied_with_its_parts_and_exported() {
    let (dev, _tools, folder) = dev().await;
    let flow = "component_type: Flow
id: f
name: Ask it
start_node: {$component_ref: start}
nodes: [{$component_ref: start}, {$component_ref: ask}, {$component_ref: end}]
control_flow_connections:
- {component_type: ControlFlowEdge, id: c1, name: c1, from_node: {$component_ref: start}, to_node: {$component_ref: ask}}
- {component_type: ControlFlowEdge, id: c2, name: c2, from_node: {$component_ref: ask}, to_node: {$component_ref: end}}
data_flow_connections: null
outputs: [{title: generated_text, type: string}]
$referenced_components:
  start: {component_type: StartNode, id: start, name: start}
  ask: {component_type: LlmNode, id: ask, name: ask, prompt_template: go, llm_config: {$component_ref: model}}
  end: {component_type: EndNode, id: end, name: end, outputs: [{title: generated_text, type: string}]}
agentspec_version: 26.2.0
";
    let parts = "$referenced_components:\n  model: {component_type: OpenAiConfig, id: model, name: m, model_id: small, api_key: {$component_ref: model.api_key}}\n";
    for (file, text) in
        [("flow.yaml", flow), ("parts.yaml", parts), ("values.json", "{\"model.api_key\": \"sk-hush\"}")]
    {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let without = dev.run(&["agent", "apply", "flow.yaml", "parts.yaml"]).await;
    assert!(without.code == Some(1) && format!("{without:?}").contains("AS-19"), "{without:?}");
    let files = ["agent", "apply", "flow.yaml", "parts.yaml", "--registry", "values.json", "-o", "ids"];
    let applied = dev.run(&files).await;
    assert_eq!((applied.code, applied.stdout.as_str()), (Some(0), "ask-it\n"), "{applied:?}");
    let exported = dev.run(&["agent", "export", "ask-it", "--format", "agent-spec"]).await;
    assert_eq!(exported.code, Some(0), "{exported:?}");
    assert_eq!(exported.json()["component_type"], "Flow");
    assert!(!exported.stdout.contains("sk-hush"), "{exported:?}");
    stop(dev).await;
}
