//! Lists of jobs and of costs: delegates with their agents, models without a price, a scripted provider's breaker.

use super::Dev;
use serde_json::{Value, json};

const SCRIPT: &str = "
rules:
  - when: {user_contains: fail}
    answer: {error: {kind: unavailable, message: away}}
  - when: {tools_include: [scout], tool_results: 0}
    answer: {tool_calls: [{name: scout, arguments: {input: look}}]}
  - answer: {text: all quiet}
";

fn agent(name: &str, capabilities: &str) -> String {
    format!(
        "kind: \"openagentspec:v1/agent\"\nname: {name}\ndescription: An agent called {name}.\nintent: You are {name}.\n\
         owner: tests\n{capabilities}"
    )
}

async fn dev(more: &str) -> (Dev, tempfile::TempDir) {
    let folder = turnstone_tests::scratch::folder();
    let settings = format!(
        "[providers.script]\nkind = 'scripted'\nscript = 'script.yaml'\n{more}\n[models]\n\
         default_provider = 'script'\ndefault_model = 'm'\n[agents]\ndir = 'agents'\n"
    );
    std::fs::create_dir(folder.path().join("agents")).unwrap();
    for (file, text) in [
        ("turnstone.toml", settings.as_str()),
        ("script.yaml", SCRIPT),
        ("agents/lead.yaml", &agent("lead", "capabilities: {scout: {}}\n")),
        ("agents/scout.yaml", &agent("scout", "")),
    ] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    (Dev::start(folder.path(), &[]).await, folder)
}

async fn push(dev: &Dev, words: &str, more: &[&str]) -> String {
    let args = json!([words]).to_string();
    let push = ["job", "push", "--type", "agent.ask", "--agent", "lead", "--args", &args, "-o", "ids"];
    let pushed = dev.run(&[&push[..], more].concat()).await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    pushed.stdout.trim().to_owned()
}

#[tokio::test]
async fn a_delegate_is_listed_with_its_agent_and_an_unpriced_model_with_an_unknown_cost() {
    let (dev, _folder) = dev("").await;
    let id = push(&dev, "go", &[]).await;
    dev.events(&id, |name, _| name == "job.completed").await;
    let listed = dev.run(&["job", "list", "-o", "json"]).await.json();
    let of = |job: &Value| job["meta"]["agent"].as_str().unwrap_or_default().to_owned();
    let mut agents: Vec<String> = listed.as_array().unwrap().iter().map(of).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["lead", "scout"], "{listed:#}");
    let table = dev.run(&["job", "list"]).await;
    assert!(table.stdout.contains("  scout  "), "{table:?}");

    let engagement = dev.get(&format!("/ojs/v1/jobs/{id}")).await["ext_agent_engagement_id"].clone();
    for cost in [&["budget", "cost"][..], &["budget", "cost", engagement.as_str().unwrap()]] {
        let shown = dev.run(cost).await;
        assert!(shown.stdout.contains("unknown"), "{cost:?}: {shown:?}");
        assert!(shown.stderr.contains("[prices."), "{cost:?}: {shown:?}");
    }
    let shown = dev.run(&["budget", "cost", engagement.as_str().unwrap()]).await;
    assert!(shown.stdout.contains("tokens, cost unknown"), "{shown:?}");
}

#[tokio::test]
async fn a_scripted_provider_has_the_breaker_of_its_section() {
    let breaker = "breaker = { failure_threshold = 1, failure_share = 1, timeout_ms = 600000 }";
    let (dev, _folder) = dev(breaker).await;
    push(&dev, "fail", &[]).await;
    let mut listed = Value::Null;
    turnstone_tests::wait::until("one failing job opens the breaker", async || {
        listed = dev.run(&["breaker", "list", "-o", "json"]).await.json();
        listed.as_array().is_some_and(|breakers| breakers.iter().any(|breaker| breaker["state"] == "open"))
    })
    .await;
    assert!(listed.to_string().contains("script"), "{listed:#}");
}
