//! Migrating, serving, working, and listing workers.

use super::{JOB, Site};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use turnstone_tests::Reply;

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_database_is_migrated_once_and_configured_queues_exist() {
    let site = Site::bare(|_| Reply::text("done")).await;
    let first = site.run(&["migrate", "-o", "json"]).await;
    assert_eq!(first.code, Some(0), "{first:?}");
    let applied = first.json()["applied"].as_array().unwrap().clone();
    assert!(applied.len() == 1 && applied[0].as_str().unwrap().starts_with("0001"), "{applied:?}");
    let again = site.run(&["migrate", "-o", "json"]).await;
    assert_eq!((again.code, again.json()), (Some(0), json!({"applied": []})));

    let unknown = site.run(&["worker", "--queues", "default,night-shift"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown.stderr.contains("queue `night-shift` is unknown to this fleet; known are ai-agents, default")
    );
    let misspelt = site.run(&["worker", "--queues", "ai-agnets"]).await;
    assert!(misspelt.stderr.contains("did you mean `ai-agents`?"), "{misspelt:?}");
    let file = site.path().join("turnstone.toml");
    let settings = std::fs::read_to_string(&file).unwrap() + "[worker]\nqueues = ['night-shift']\n";
    std::fs::write(file, settings).unwrap();
    assert_eq!(site.run(&["migrate"]).await.code, Some(0));
    site.worker("w", &[]).await.stop().await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn three_processes_run_a_job_and_list_it() {
    let site = Site::migrated(|_| Reply::text("done by a fleet")).await;
    let (api, scheduler) = (site.api().await, site.scheduler().await);
    let worker = site.worker("night-1", &["--slots", "4", "--queues", "ai-agents,default"]).await;
    let followed = api.run(&[&JOB[..], &["--watch"]].concat()).await;
    assert!(followed.code == Some(0) && followed.stdout.contains("done by a fleet"), "{followed:?}");

    let workers = api.workers().await;
    assert_eq!(workers.len(), 1, "{workers:?}");
    let seen = &workers[0];
    for (field, value) in [
        ("name", json!("night-1")),
        ("state", json!("running")),
        ("alive", json!(true)),
        ("slots", json!(4)),
        ("busy", json!(0)),
        ("queues", json!(["ai-agents", "default"])),
        ("pid", json!(worker.pid())),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(seen[field], value, "{field} of {seen:#}");
    }
    assert!(seen["seen_at"].as_str().unwrap().ends_with('Z'), "{seen:#}");
    let table = api.run(&["worker", "list"]).await.stdout;
    assert!(table.contains("night-1") && table.contains("of 4"), "{table}");
    assert_eq!(api.run(&["worker", "list", "-o", "ids"]).await.stdout, "night-1\n");

    worker.stop().await;
    assert!(api.workers().await.is_empty(), "a worker that left is not listed");
    scheduler.stop().await;
    api.program.stop().await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_needs_a_name_of_its_own() {
    let site = Site::migrated(|_| Reply::text("done")).await;
    let first = site.worker("w", &[]).await;
    let second = site.run(&["worker", "--name", "w"]).await;
    assert_eq!(second.code, Some(1), "{second:?}");
    let words = format!("a worker named `w` is running already: process {}", first.pid());
    assert!(second.stderr.contains(&words) && second.stderr.contains("--name"), "{second:?}");
    assert!(second.stdout.is_empty(), "it said that it runs: {second:?}");
    first.stop().await;
    site.worker("w", &[]).await.stop().await;
    let odd = site.run(&["worker", "--name", "two words"]).await;
    assert!(odd.code == Some(2) && odd.stderr.contains("worker.name"), "{odd:?}");
    let odd = site.run(&["worker", "--lease", "15"]).await;
    assert!(odd.code == Some(2) && odd.stderr.contains("such as 90s"), "{odd:?}");
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_paused_past_its_lease_writes_nothing_and_logs_it_once() {
    let first = AtomicBool::new(true);
    let site = Site::migrated(move |_| {
        if first.swap(false, Ordering::SeqCst) { Reply::Hang } else { Reply::text("done elsewhere") }
    })
    .await;
    let api = site.api().await;
    let mut paused = site.worker("paused", &["--lease", "1s", "--drain-grace", "1s"]).await;
    let id = api.push().await;
    site.asked().await;
    paused.signal("STOP");
    // Started after the pause, so that no lease of a slow machine is reaped while its worker is awake.
    let scheduler = site.scheduler().await;
    let other = site.worker("other", &["--lease", "14s"]).await;
    api.event(&id, |name, _| name == "job.completed").await;
    paused.signal("CONT");
    paused.warns("lease lost").await;
    paused.signal("TERM");
    assert_eq!(paused.ended().await, Some(0));
    let log = paused.warned();
    assert_eq!(log.matches("lease lost").count(), 1, "{log}");
    assert!(log.contains(&id), "the job is not named: {log}");
    let job = api.job(&id).await;
    assert_eq!((&job["result"], &job["attempt"]), (&json!("done elsewhere"), &json!(2)));
    for program in [other, scheduler, api.program] {
        program.stop().await;
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn agents_of_the_configured_directory_are_registered_by_the_api() {
    let site = Site::migrated(|_| Reply::text("done")).await;
    let agents = site.path().join("agents");
    std::fs::create_dir(&agents).unwrap();
    let agent = "kind: \"openagentspec:v1/agent\"\nname: clerk\ndescription: A clerk.\nintent: You answer.\nowner: me\n";
    std::fs::write(agents.join("clerk.yaml"), agent).unwrap();
    std::fs::write(agents.join("broken.yaml"), "name: [").unwrap();
    let file = site.path().join("turnstone.toml");
    let settings = std::fs::read_to_string(&file).unwrap() + "[agents]\ndir = 'agents'\n";
    std::fs::write(file, settings).unwrap();
    let mut api = site.api().await;
    assert_eq!(api.run(&["agent", "list", "-o", "ids"]).await.stdout, "clerk\n");
    api.program.warns("broken.yaml:1:").await;
    api.program.stop().await;
}

/// AGS-36: the `api` process of a fleet checks documents against `[tool_policy]` as `turnstone dev` does. It accepts
/// the programs and addresses that the policy allows, refuses others, and stores nothing of these.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn the_api_checks_documents_against_the_tool_policy() {
    let site = Site::migrated(|_| Reply::text("done")).await;
    let document = |name: &str, url: &str, command: &str| {
        format!(
            "agentspec_version: 26.2.0\ncomponent_type: Agent\nid: {name}\nname: {name}\nsystem_prompt: You help.\n\
             llm_config: {{component_type: OpenAiCompatibleConfig, id: llm, name: llm, model_id: m, url: '{url}'}}\n\
             toolboxes:\n- component_type: MCPToolBox\n  id: box\n  name: box\n  client_transport: {{component_type: \
             StdioTransport, id: way, name: way, command: {command}}}\n"
        )
    };
    let http = turnstone_tests::http::client();
    let outcome = async |url: &str, document: String| {
        let sent =
            http.post(format!("{url}/agents")).header("content-type", "application/yaml").body(document);
        let answer = sent.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let api = site.api().await;
    let (status, body) = outcome(&api.url, document("early", "http://127.0.0.1:9/v1", "sh")).await;
    assert!(status == 422 && body.contains("AS-60"), "{status} {body}");
    api.program.stop().await;
    let path = site.path().join("turnstone.toml");
    let settings = std::fs::read_to_string(&path).unwrap();
    let policy = "[tool_policy]\nallow_private = true\nallowed_hosts = ['127.0.0.1']\n[tool_policy.allowed_commands.sh]\nprogram = '/bin/sh'\n";
    std::fs::write(&path, format!("{settings}{policy}")).unwrap();
    let api = site.api().await;
    let (status, body) = outcome(&api.url, document("allowed", "http://127.0.0.1:9/v1", "sh")).await;
    assert_eq!(status, 201, "{body}");
    let (status, body) = outcome(&api.url, document("other", "http://127.0.0.1:9/v1", "perl")).await;
    assert!(status == 422 && body.contains("allowed_commands"), "{status} {body}");
    let listed = http.get(format!("{}/agents", api.url)).send().await.unwrap().text().await.unwrap();
    assert!(listed.contains("allowed") && !listed.contains("early") && !listed.contains("other"), "{listed}");
    api.program.stop().await;
}
