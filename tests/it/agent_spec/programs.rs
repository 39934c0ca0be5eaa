//! The programs that documents start: the name is the document's, and the configuration decides what it starts.

use super::{awaiting, end, flow, job, llm_of, part, register, start, then};
use crate::program::run;
use crate::stores::on_stores;
use crate::tools::{parrot, with_servers};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use turnstone_tests::servers::need_python;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/tools/mcp_server.py");

on_stores! {
    everywhere: [
        a_document_asks_for_no_more_than_its_program_allows,
        a_worker_starts_no_more_than_its_own_configuration_allows,
        a_document_starts_the_configured_program_with_a_clean_environment,
    ],
    sqlite_first: [a_document_does_not_extend_a_section_of_the_operator],
}

/// Returns the absolute path of Python itself: the one in `PATH` may be a script that sets variables.
pub fn python() -> PathBuf {
    need_python();
    let asked =
        std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    PathBuf::from(String::from_utf8(asked.unwrap().stdout).unwrap().trim())
}

/// Returns a `[tool_policy]` with these programs.
fn policy(programs: &Value) -> Value {
    json!({"allowed_hosts": ["127.0.0.1"], "allow_private": true, "allowed_commands": programs})
}

/// Returns an agent whose tools come from a program.
fn agent(fleet: &Fleet, name: &str, program: &Value) -> Value {
    let toolboxes = [part(
        "MCPToolBox",
        "box",
        json!({"client_transport": part("StdioTransport", "way", program.clone())}),
    )];
    let model = llm_of(fleet, &format!("{name}-llm"));
    let fields = json!({"llm_config": model, "system_prompt": "You call.", "toolboxes": toolboxes});
    let mut agent = part("Agent", name, fields);
    agent["agentspec_version"] = "26.2.0".into();
    agent
}

/// Returns a flow whose node calls a tool of a program.
fn node(program: &Value) -> Value {
    let fields = json!({"client_transport": part("StdioTransport", "way", program.clone()), "inputs": [], "outputs": []});
    let node = part("ToolNode", "call", json!({"tool": part("MCPTool", "env", fields)}));
    let inner = flow(
        "inner",
        &[start("first", &[]), node, end("last", &[])],
        &[then("first", "call"), then("call", "last")],
        &[],
    );
    let nodes = [start("start", &[]), part("FlowNode", "inside", json!({"subflow": inner})), end("end", &[])];
    let mut flow = flow("desk", &nodes, &[then("start", "inside"), then("inside", "end")], &[]);
    flow["agentspec_version"] = "26.2.0".into();
    flow
}

/// A model that calls `env`, and repeats what it gets.
fn calls_env(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("env", json!({})),
        _ => {
            Reply::text(request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap())
        }
    }
}

/// Runs an agent until it answers; returns the environment of its program.
async fn environment(fleet: &Fleet, name: &str) -> Value {
    let job = fleet.settled(&fleet.push(&job(name, &json!({}))).await).await;
    assert!(job["error"].is_null(), "{job:#}");
    let text = awaiting(fleet, &job).await["prompt"].as_str().expect("an answer").to_owned();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("no environment: {text}; {:?}", job))
}

/// Writes a module that Python executes when it starts, if `PYTHONPATH` names its folder. It makes the returned file.
fn trap(folder: &Path) -> PathBuf {
    let mark = folder.join("mark");
    let code = format!("open({:?}, 'w').close()\n", mark.to_str().unwrap());
    std::fs::write(folder.join("sitecustomize.py"), code).unwrap();
    mark
}

/// AGS-36: a document that asks for another program, other arguments, a variable or a folder is refused with the reason, and
/// nothing is stored.
async fn a_document_asks_for_no_more_than_its_program_allows(backend: Backend) {
    let allowed = json!({
        "parrot": {"program": python(), "args": [SERVER, "well"], "env": ["HINTS"]},
        "finder": {"program": python(), "args_any_of": [[SERVER, "well"], [SERVER, "papers"]], "cwd": "/usr"},
    });
    let fleet = Fleet::builder().on(backend).workers(0).tool_policy(&policy(&allowed)).start().await;
    let fitting = json!({"command": "finder", "args": [SERVER, "papers"], "cwd": "/usr"});
    for (asked, words) in [
        (json!({"command": "parrot", "env": {"PATH": "/tmp"}}), "sets the variable `PATH`"),
        (json!({"command": "parrot", "env": {"PYTHONPATH": "/tmp"}}), "sets the variable `PYTHONPATH`"),
        (json!({"command": "parrot", "env": {"LD_PRELOAD": "/tmp/x.so"}}), "sets the variable `LD_PRELOAD`"),
        (json!({"command": "parrot", "env": {"hints": "{}"}}), "sets the variable `hints`"),
        (
            json!({"command": "parrot", "env": {"HINTS": "{{hints}}"}}),
            "has a placeholder in the variable `HINTS`",
        ),
        (json!({"command": "parrot", "args": ["-c", "print()"]}), "has arguments that"),
        (json!({"command": "parrot", "args": [SERVER, "well", "more"]}), "has arguments that"),
        (json!({"command": "parrot", "args": [SERVER, "{{mode}}"]}), "has arguments that"),
        (json!({"command": "finder", "args": []}), "has arguments that"),
        (json!({"command": "finder", "args": [SERVER]}), "has arguments that"),
        (json!({"command": "python3"}), "starts the program `python3`"),
        (json!({"command": python()}), "starts the program `/"),
        (json!({"command": "./parrot"}), "starts the program `./parrot`"),
        (json!({"command": "{{program}}"}), "starts the program `{{program}}`"),
        (json!({"command": "parrot", "cwd": "/tmp"}), "names the folder `/tmp`"),
        (
            json!({"command": "finder", "args": [SERVER, "well"], "cwd": "/usr/.."}),
            "names the folder `/usr/..`",
        ),
    ] {
        let documents = [agent(&fleet, "desk", &asked), node(&asked)];
        for (document, (method, path)) in documents.iter().flat_map(|document| {
            [(Method::POST, "/agents"), (Method::PUT, "/agents/desk")].map(|to| (document, to))
        }) {
            let bundle = json!({"document": document.to_string()});
            for body in [document.to_string(), bundle.to_string()] {
                let (status, body) = fleet.send(method.clone(), path, body).await;
                assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{asked}: {body:#}");
                let problems = &body["error"]["details"]["problems"];
                assert_eq!(problems[0]["rule"], "AS-60", "{body:#}");
                assert!(
                    problems.to_string().contains(&json!(words).to_string()[1..words.len()]),
                    "{words}: {body:#}"
                );
            }
        }
    }
    assert_eq!(fleet.number("SELECT count(*) FROM agents").await, 0);
    for document in [agent(&fleet, "desk", &fitting), node(&json!({"command": "parrot"}))] {
        let (status, body) = fleet.post("/agents", &document).await;
        assert!(status.is_success(), "{body:#}");
    }
    fleet.end().await;
}

/// AGS-36: the worker compares a stored document with its own configuration, which may have become narrower since the
/// registration. A program that it does not allow is not started.
async fn a_worker_starts_no_more_than_its_own_configuration_allows(backend: Backend) {
    let folder = turnstone_tests::scratch::folder();
    let mark = trap(folder.path());
    let modes = json!([[SERVER, "well"], [SERVER, "well", "more"]]);
    let program =
        json!({"program": python(), "args_any_of": modes, "env": ["PYTHONPATH"], "cwd": folder.path()});
    let wide = policy(&json!({"parrot": program, "other": program}));
    let mut fleet = Fleet::builder().on(backend).workers(1).model(calls_env).tool_policy(&wide).start().await;
    let asked = |more: Value| {
        let mut asked = json!({"command": "parrot", "args": [SERVER, "well"]});
        asked.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        asked
    };
    let documents = [
        ("variable", asked(json!({"env": {"PYTHONPATH": folder.path()}})), "sets the variable `PYTHONPATH`"),
        ("arguments", asked(json!({"args": [SERVER, "well", "more"]})), "has arguments that"),
        ("folder", asked(json!({"cwd": folder.path()})), "names the folder"),
        ("program", asked(json!({"command": "other"})), "starts the program `other`"),
    ];
    for (name, asked, _) in &documents {
        register(&fleet, agent(&fleet, name, asked)).await;
    }
    // The variable lets a document run code, which is the operator's choice here.
    environment(&fleet, "variable").await;
    assert!(mark.exists(), "Python did not read PYTHONPATH");
    fleet.stop_workers().await;
    std::fs::remove_file(&mark).unwrap();

    let narrow = policy(&json!({"parrot": {"program": python(), "args": [SERVER, "well"]}}));
    fleet.add_worker_with(4, |mut deps| {
        let clock = Arc::clone(&deps.clock);
        let narrow = serde_json::from_value(narrow).unwrap();
        deps.toolbox = deps.toolbox.with_policy(narrow, &clock).expect("a policy");
        deps
    });
    for (name, _, words) in &documents {
        let job = fleet.settled(&fleet.push(&job(name, &json!({}))).await).await;
        let message = job["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(job["state"], "discarded", "{job:#}");
        assert!(message.contains(words) && message.contains("[tool_policy"), "{message}");
    }
    assert!(!mark.exists(), "the program was started");
    fleet.end().await;
}

/// The program of a document gets the variables that its section allows, a fixed `PATH`, and nothing of the worker's
/// environment. It starts in the folder of its section.
async fn a_document_starts_the_configured_program_with_a_clean_environment(backend: Backend) {
    let folder = turnstone_tests::scratch::folder();
    let allowed = json!({"parrot": {"program": python(), "args": [SERVER, "well"], "env": ["HINTS", "MEET"],
                                    "cwd": folder.path()}});
    let fleet = Fleet::builder().on(backend).model(calls_env).tool_policy(&policy(&allowed)).start().await;
    register(&fleet, agent(&fleet, "desk", &json!({"command": "parrot", "env": {"MEET": "1"}}))).await;
    let mut found = environment(&fleet, "desk").await;
    let found = found.as_object_mut().unwrap();
    // Python sets it by itself when there is no locale.
    found.remove("LC_CTYPE");
    let expected = json!({"PATH": "/usr/local/bin:/usr/bin:/bin", "MEET": "1"});
    assert_eq!(json!(found), expected);
    fleet.end().await;
}

/// A document names a section `[mcp.<name>]` of the operator, and adds no arguments, variables or folder to its program. A
/// `StdioTransport` with the name of such a section starts nothing.
async fn a_document_does_not_extend_a_section_of_the_operator(backend: Backend) {
    let folder = turnstone_tests::scratch::folder();
    let mark = trap(folder.path());
    let builder = Fleet::builder().on(backend).workers(0).mcp_servers(&["parrot"]).model(calls_env);
    let mut fleet = builder.tool_policy(&policy(&json!({}))).start().await;
    let servers = json!({"parrot": parrot("well", &json!({"tools": ["env"], "env": {"MEET": "1"}}))});
    fleet.add_worker_with(4, |deps| with_servers(deps, &servers));
    let (status, body) = fleet.post("/agents", &agent(&fleet, "desk", &json!({"command": "parrot"}))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
    let manifest = format!(
        "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: scout, version: 1.0.0}}\nspec:\n  role: You scout.\n  \
         llm: {{provider: openai, model: m}}\n  tools:\n    - {{type: mcp, server: parrot, capabilities: [env], config: \
         {{env: {{PYTHONPATH: {0:?}}}, command: sh, args: [more], cwd: /tmp}}}}\n",
        folder.path()
    );
    fleet.register(manifest).await;
    let run = json!({"type": "agent.run", "args": ["go"], "meta": {"agent": "scout"}, "ext_agent_token_budget": 100_000});
    let id = fleet.push(&run).await;
    let job = fleet.settled(&id).await;
    let found: Value =
        serde_json::from_str(job["result"].as_str().unwrap_or_default()).expect("an environment");
    assert!(found.get("PYTHONPATH").is_none() && found["MEET"] == "1", "{found:#}");
    assert!(!mark.exists(), "the program ran code of the document");
    fleet.end().await;
}

/// `config check` and `doctor` report a program or folder that is not there, and `agent lint --reach` compares a document
/// with the configuration.
#[tokio::test]
async fn the_commands_report_programs_that_are_missing_or_not_allowed() {
    let folder = turnstone_tests::scratch::folder();
    let configure = |program: &str, more: &str| {
        let text = format!("[tool_policy.allowed_commands.finder]\nprogram = '{program}'\n{more}");
        std::fs::write(folder.path().join("turnstone.toml"), text).unwrap();
    };
    let document = "agentspec_version: 26.2.0\ncomponent_type: MCPToolBox\nid: box\nname: box\nclient_transport:\n  \
                    component_type: StdioTransport\n  id: way\n  name: way\n  command: finder\n  env: {PATH: /tmp}\n";
    std::fs::write(folder.path().join("box.yaml"), document).unwrap();
    let plain = folder.path().join("box.yaml").display().to_string();
    for (program, more, words) in [
        ("/no/such/program", "", "program: /no/such/program is no executable file"),
        (&plain, "", "box.yaml is no executable file"),
        ("/bin", "", "program: /bin is no executable file"),
        ("/bin/sh", "cwd = '/no/such/folder'", "cwd: /no/such/folder is not a directory"),
    ] {
        configure(program, more);
        for command in [&["config", "check"][..], &["doctor"]] {
            let ran = run(folder.path(), command, &[]).await;
            let said = ran.stdout.clone() + &ran.stderr;
            assert!(ran.code != Some(0) && said.contains(words), "{command:?}: {ran:?}");
        }
    }
    for (more, refused) in [("", true), ("env = ['PATH']", false)] {
        configure("/bin/sh", more);
        let checked = run(folder.path(), &["config", "check"], &[]).await;
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert_eq!(run(folder.path(), &["agent", "lint", "box.yaml"], &[]).await.code, Some(0));
        let lint = run(folder.path(), &["agent", "lint", "--reach", "box.yaml", "-o", "json"], &[]).await;
        assert_eq!(lint.code, Some(i32::from(refused)), "{lint:?}");
        let problem = &lint.json()[0];
        assert_eq!(problem["rule"] == "AS-60" && problem["line"] == 10, refused, "{problem:#}");
    }
}
