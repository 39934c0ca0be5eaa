//! The commands for budgets and breakers: real processes and their output.

use super::Dev;
use serde_json::{Value, json};

async fn dev() -> (Dev, tempfile::TempDir) {
    let folder = turnstone_tests::scratch::folder();
    (Dev::start(folder.path(), &[]).await, folder)
}

#[tokio::test]
async fn budgets_are_set_listed_shown_raised_and_deleted() {
    let (dev, _folder) = dev().await;
    assert_eq!(dev.says_ok(&["budget", "list", "-o", "ids"]).await, "");
    let set =
        ["budget", "set", "tenant/acme", "--tokens-per-day", "1000", "--cost", "2.50", "--on-exceed", "park"];
    let shown = dev.says_ok(&set).await;
    assert!(shown.contains("tenant/acme") && shown.contains("park"), "{shown}");
    assert_eq!(dev.says_ok(&["budget", "list", "-o", "ids"]).await, "tenant/acme");
    let table = dev.says_ok(&["budget", "list"]).await;
    for word in ["BUDGET", "WHEN EXCEEDED", "tenant/acme", "park"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    dev.says_ok(&["budget", "raise", "tenant/acme", "--tokens-per-day", "500", "--cost", "0.50"]).await;
    let budget = dev.json_of(&["budget", "show", "tenant/acme"]).await;
    let limits = &budget["limits"];
    assert_eq!((&limits["tokens_per_day"], &limits["cost"]), (&json!(1500), &json!("3.00")), "{budget:#}");
    dev.says_ok(&["budget", "set", "tenant/acme", "--tokens", "9000"]).await;
    let budget = dev.json_of(&["budget", "show", "tenant/acme"]).await;
    let limits = json!({"tokens": 9000, "tokens_per_day": 1500, "cost": "3.00", "cost_per_day": null});
    assert_eq!((&budget["limits"], &budget["on_exceed"]), (&limits, &json!("park")), "{budget:#}");
    dev.says_ok(&["budget", "set", "tenant/acme", "--only", "--tokens", "9000"]).await;
    let budget = dev.json_of(&["budget", "show", "tenant/acme"]).await;
    let limits = json!({"tokens": 9000, "tokens_per_day": null, "cost": null, "cost_per_day": null});
    assert_eq!(budget["limits"], limits, "{budget:#}");
    assert_eq!(dev.says_ok(&["budget", "delete", "tenant/acme"]).await, "tenant/acme is forgotten");
    let gone = dev.run(&["budget", "show", "tenant/acme"]).await;
    assert_eq!(gone.code, Some(4), "{gone:?}");
    for (wrong, says) in [
        (&["budget", "set", "acme", "--tokens", "1"][..], "tenant/NAME"),
        (&["budget", "raise", "fleet"], "nothing to raise"),
    ] {
        let ran = dev.run(wrong).await;
        assert!(ran.code != Some(0) && ran.stderr.contains(says), "{wrong:?}: {ran:?}");
    }
}

/// Parked jobs tell what they need, and a raise by too little says so.
#[tokio::test]
async fn a_shared_budget_says_what_its_waiting_jobs_need() {
    let folder = turnstone_tests::scratch::folder();
    let settings = "[providers.script]\nkind = 'scripted'\nscript = 'script.yaml'\n";
    for (file, text) in [("turnstone.toml", settings), ("script.yaml", "rules: [{answer: {text: done}}]\n")] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let dev = Dev::start(folder.path(), &[]).await;
    dev.says_ok(&["budget", "set", "fleet", "--tokens", "1", "--on-exceed", "park"]).await;
    let job = json!({"type": "agent.spend", "args": ["hello"], "ext_agent_model": "m"});
    let id = dev.post("/ojs/v1/jobs", &job).await["job"]["id"].as_str().unwrap().to_owned();
    let state = async || dev.get(&format!("/ojs/v1/jobs/{id}")).await["job"]["state"].clone();
    let is_parked = async || state().await == "pending";
    turnstone_tests::wait::until("it is parked", is_parked).await;
    let awaited = dev.json_of(&["budget", "show", "fleet"]).await["awaited"].clone();
    let [needed, short] = ["needed", "short"].map(|name| awaited[name].as_i64().unwrap());
    assert!(needed > 1 && short == needed - 1, "{awaited:#}");
    let said = dev.says_ok(&["budget", "raise", "fleet", "--tokens", "1"]).await;
    let command = format!("turnstone budget raise fleet --tokens {}", short - 1);
    assert!(said.contains(&format!("may need {needed} for its next call: {command}")), "{said}");
    // Every raise wakes the job, which parks again after one by too little.
    turnstone_tests::wait::until("it is parked again", is_parked).await;
    let said = dev.says_ok(&["budget", "raise", "fleet", "--tokens", &(short - 1).to_string()]).await;
    assert!(said.contains("the oldest waiting job goes on"), "{said}");
    turnstone_tests::wait::until("it goes on", async || state().await == "completed").await;
    let said = dev.says_ok(&["budget", "show", "fleet"]).await;
    assert!(!said.contains("waiting job"), "{said}");
}

#[tokio::test]
async fn an_engagements_budget_is_raised_and_its_cost_is_shown() {
    let (dev, _folder) = dev().await;
    let job = json!({"type": "agent.spend", "args": ["hello"], "ext_agent_model": "m", "ext_agent_token_budget": 1,
                     "options": {"retry": {"max_attempts": 9}}});
    let id = dev.post("/ojs/v1/jobs", &job).await["job"]["id"].as_str().unwrap().to_owned();
    let job = dev.get(&format!("/ojs/v1/jobs/{id}")).await;
    let engagement = job["job"]["ext_agent_engagement_id"].as_str().unwrap().to_owned();
    let said = dev.says_ok(&["budget", "raise", "--engagement", &engagement, "--tokens", "50000"]).await;
    assert_eq!(said, format!("the budget of engagement {engagement} is raised: 50001 tokens are left"));
    let budget = dev.json_of(&["budget", "raise", "--engagement", &engagement, "--tokens", "1"]).await;
    assert_eq!(budget["tokens"]["limit"], 50_002, "{budget:#}");
    let cost: Value = dev.json_of(&["budget", "cost", &engagement]).await;
    assert!(cost.is_object() || cost.is_array(), "{cost:#}");
    let nobody = dev.run(&["budget", "raise", "--engagement", "nobody", "--tokens", "1"]).await;
    assert_eq!(nobody.code, Some(4), "{nobody:?}");
}

#[tokio::test]
async fn breakers_are_listed_and_reset() {
    let (dev, _folder) = dev().await;
    assert_eq!(dev.says_ok(&["breaker", "list", "-o", "ids"]).await, "");
    assert_eq!(dev.json_of(&["breaker", "list"]).await, json!([]));
    let well = dev.run(&["breaker", "reset", "tool/desk/search"]).await;
    assert_eq!(well.code, Some(4), "{well:?}");
    assert!(well.stderr.contains("tool/desk/search"), "{well:?}");
}
