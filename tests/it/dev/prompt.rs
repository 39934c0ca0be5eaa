//! The comforts of the prompt: short ids, timelines, lists that repeat, and workers that are drained from afar.

use super::Dev;
use serde_json::{Value, json};
use turnstone_tests::{Gate, ModelServer, Reply, wait};

/// Settings with a provider at this address.
fn settings(models: &ModelServer) -> String {
    format!(
        "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n\
         [tools.search]\ndescription = 'searches'\nurl = 'http://127.0.0.1:9/'\nallow_private = true\n",
        models.url
    )
}

async fn dev(
    script: impl Fn(&Value) -> Reply + Send + Sync + 'static,
) -> (Dev, ModelServer, tempfile::TempDir) {
    let models = ModelServer::start(script).await;
    let folder = turnstone_tests::scratch::folder();
    std::fs::write(folder.path().join("turnstone.toml"), settings(&models)).unwrap();
    (Dev::start(folder.path(), &[]).await, models, folder)
}

impl Dev {
    /// Enqueues a job of an agent, and returns its id and that of its engagement.
    async fn engaged(&self, extra: &[&str]) -> (String, String) {
        let push = ["job", "push", "--type", "agent.ask", "--args", "[\"hi\"]", "--set", "ext_agent_model=m"];
        let id = self.says_ok(&[&push[..], extra, &["-o", "ids"]].concat()).await;
        let job = self.get(&format!("/ojs/v1/jobs/{id}")).await;
        (id, job["job"]["ext_agent_engagement_id"].as_str().unwrap().to_owned())
    }
}

#[tokio::test]
async fn ids_may_be_cut_as_long_as_they_are_unique() {
    let (dev, _models, _folder) = dev(|_| Reply::text("done")).await;
    let (first, engagement) = dev.engaged(&[]).await;
    let (second, _) = dev.engaged(&[]).await;
    let watched = dev.says_ok(&["job", "watch", &first[..32]]).await;
    assert!(watched.contains(&format!("result of {first}")), "{watched}");
    assert_eq!(dev.says_ok(&["job", "get", &second[..32], "-o", "ids"]).await, second);
    let shown = dev.says_ok(&["engagement", "show", &engagement[..32]]).await;
    assert!(shown.contains(&first), "{shown}");
    for command in [&["engagement", "messages"][..], &["engagement", "follow"], &["budget", "cost"]] {
        dev.says_ok(&[command, &[&engagement[..32]]].concat()).await;
    }
    // The first characters are those of the time, in steps of seven weeks.
    let ambiguous = dev.run(&["job", "get", &first[..4]]).await;
    assert_eq!(ambiguous.code, Some(2), "{ambiguous:?}");
    assert!(ambiguous.stderr.contains(&first) && ambiguous.stderr.contains(&second), "{ambiguous:?}");
    let unknown = dev.run(&["job", "get", "ffff"]).await;
    assert!(unknown.code == Some(4) && unknown.stderr.contains("begins with ffff"), "{unknown:?}");
    let some = dev.run(&["job", "cancel", "ffff", &first[..4]]).await;
    assert_eq!(some.code, Some(4), "{some:?}");
    assert!(some.stderr.contains("begins with ffff") && some.stderr.contains("several jobs"), "{some:?}");
}

#[tokio::test]
async fn jobs_are_listed_by_their_meta_and_dead_letters_by_their_tag() {
    let (dev, _models, _folder) = dev(|_| Reply::text("done")).await;
    let (found, _) = dev.engaged(&["--set", "meta={\"customer\": 42}", "--tag", "run=7"]).await;
    dev.engaged(&["--set", "meta={\"customer\": 43}"]).await;
    let list = ["job", "list", "--meta", "customer=42"];
    assert_eq!(dev.says_ok(&[&list[..], &["-o", "ids"]].concat()).await, found);
    assert!(dev.says_ok(&list).await.contains(&found));
    let wrong = dev.run(&["job", "list", "--meta", "customer"]).await;
    assert!(wrong.code == Some(2) && wrong.stderr.contains("KEY=VALUE"), "{wrong:?}");
    let job = json!({"type": "mail.send", "args": [], "options": {"queue": "mail", "tags": ["run=8"],
                     "retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}});
    let dead = dev.post("/ojs/v1/jobs", &job).await["job"]["id"].as_str().unwrap().to_owned();
    let fetched = dev.post("/ojs/v1/workers/fetch", &json!({"queues": ["mail"], "count": 1})).await;
    let error = json!({"code": "smtp_down", "message": "no"});
    dev.post("/ojs/v1/workers/nack", &json!({"job_id": fetched["jobs"][0]["id"], "error": error})).await;
    assert_eq!(dev.says_ok(&["dead-letter", "list", "--tag", "run=8", "-o", "ids"]).await, dead);
    assert_eq!(dev.says_ok(&["dead-letter", "list", "--tag", "run=7", "-o", "ids"]).await, "");
    let retried = dev.says_ok(&["dead-letter", "retry", "--tag", "run=8"]).await;
    assert_eq!(retried, "1 of 1 jobs available again");
}

#[tokio::test]
async fn a_timeline_has_a_line_per_turn_and_per_phase_with_v() {
    let script = |request: &Value| match turnstone_tests::model_server::outcomes(request) {
        0 => Reply::call("clock", json!({})),
        _ => Reply::text("It is late."),
    };
    let (dev, _models, _folder) = dev(script).await;
    let tools = ["--set", "ext_agent_tools=[{\"name\": \"clock\"}]"];
    let (id, engagement) = dev.engaged(&tools).await;
    let lines = dev.says_ok(&["job", "watch", &id]).await;
    let turns: Vec<&str> = lines.lines().filter(|line| line.contains("  turn  ")).collect();
    assert_eq!(turns.len(), 2, "{lines}");
    assert!(turns[0].contains("; called clock") && turns[1].contains("(stop)"), "{lines}");
    assert!(!lines.contains("  infer  ") && !lines.contains("done in"), "{lines}");
    let followed = dev.says_ok(&["engagement", "follow", &engagement]).await;
    assert_eq!(followed.lines().filter(|line| line.contains("  turn  ")).count(), 2, "{followed}");
    let detailed = dev.run(&["job", "watch", &id, "-v"]).await;
    assert_eq!(detailed.stdout.matches("  infer  ").count(), 2, "{detailed:?}");
    assert!(
        !detailed.stdout.contains("  turn  ") && detailed.stderr.contains("GET /ojs/v1/jobs"),
        "{detailed:?}"
    );
}

#[tokio::test]
async fn lists_of_budgets_show_the_reserved_part() {
    let gate = Gate::default();
    let held = gate.clone();
    let (dev, models, _folder) = dev(move |_| Reply::text("done").behind(&held)).await;
    dev.says_ok(&["budget", "set", "fleet", "--tokens", "100000"]).await;
    let (id, _) = dev.engaged(&["--set", "ext_agent_max_tokens=500"]).await;
    models.seen(1).await;
    let reserved =
        dev.json_of(&["budget", "list"]).await[0]["rows"][0]["tokens"]["reserved"].as_i64().unwrap();
    assert!(reserved >= 500, "{reserved}");
    let table = dev.says_ok(&["budget", "list"]).await;
    assert!(table.contains(&format!("0 of 100000 + {reserved} reserved")), "{table}");
    gate.open();
    dev.says_ok(&["job", "watch", &id]).await;
    assert!(!dev.says_ok(&["budget", "list"]).await.contains("reserved"));
}

#[tokio::test]
async fn a_watched_list_of_workers_is_printed_again_until_it_is_interrupted() {
    let (dev, _models, folder) = dev(|_| Reply::text("done")).await;
    let list = ["worker", "list", "--watch", "--url", &dev.url];
    let mut watching = crate::program::Program::start(folder.path(), &list, &[]);
    watching.says("running").await;
    let beat = json!({"worker_id": "python-1", "active_jobs": []});
    dev.post("/ojs/v1/workers/heartbeat", &beat).await;
    let seen = watching.says("python-1").await;
    assert!(seen.matches("NAME").count() >= 2, "it is printed again: {seen}");
    watching.signal("INT");
    assert_eq!(watching.ended().await, Some(130));
}

/// The worker of `turnstone dev` is its process.
#[ignore = "long: the grace of a drain"]
#[tokio::test]
async fn a_drained_dev_ends_in_order() {
    let (mut dev, _models, _folder) = dev(|_| Reply::text("done")).await;
    let name = dev.json_of(&["worker", "list"]).await[0]["name"].as_str().unwrap().to_owned();
    assert_eq!(dev.says_ok(&["worker", "drain", &name]).await, format!("{name} drains"));
    wait::output("the server ends", dev.warns("stopped; unfinished jobs resume at the next start")).await;
    assert_eq!(dev.ended().await, Some(0));
}
