//! A batch at the prompt: pushed, watched, collected, and listed by what its jobs have in common.

use super::Dev;
use serde_json::json;
use std::fmt::Write as _;

const SCRIPT: &str = "
rules:
  - when: {user_contains: broken}
    answer: {error: {kind: refused, message: no}}
  - answer: {text: 'You said ${last_user}.'}
";

/// A `dev` with a scripted model, and a file with jobs, one of which fails.
async fn dev() -> (Dev, tempfile::TempDir) {
    let folder = turnstone_tests::scratch::folder();
    let settings = "[providers.script]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_provider = \
                    'script'\ndefault_model = 'm'\n";
    let mut jobs = String::new();
    for at in 0..20 {
        let job = json!({"type": "agent.echo", "args": [format!("line {at}")], "ext_agent_model": "m"});
        writeln!(jobs, "{job}").unwrap();
    }
    let broken = json!({"type": "agent.echo", "args": ["broken"], "ext_agent_model": "m",
                        "options": {"tags": ["odd"], "retry": {"max_attempts": 1}}});
    for (file, text) in [
        ("turnstone.toml", settings),
        ("script.yaml", SCRIPT),
        ("jobs.jsonl", jobs.as_str()),
        ("broken.json", &broken.to_string()),
    ] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    (Dev::start(folder.path(), &[]).await, folder)
}

#[tokio::test]
async fn a_batch_is_pushed_watched_and_collected_in_three_commands() {
    let (dev, _folder) = dev().await;
    let pushed = dev.run(&["job", "push", "jobs.jsonl", "--tag", "run=7", "--last", "-o", "ids"]).await;
    assert_eq!((pushed.code, pushed.stdout.lines().count()), (Some(0), 20), "{pushed:?}");
    let watched = dev.run(&["job", "watch", "--tag", "run=7"]).await;
    assert_eq!(watched.code, Some(0), "{watched:?}");
    let last = watched.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("run=7: 20 of 20 done, spent ") && last.contains("took "), "{watched:?}");
    let results = dev.run(&["job", "results", "--tag", "run=7"]).await;
    let results = results.lines();
    assert_eq!(results.len(), 20);
    assert_eq!(
        (&results[3]["args"], &results[3]["result"]),
        (&json!(["line 3"]), &json!("You said line 3."))
    );

    let again = dev.run(&["job", "watch", "--tag", "run=7", "-o", "json"]).await;
    assert_eq!((again.code, again.lines().len()), (Some(0), 1), "it has ended: {again:?}");
    let none = dev.run(&["job", "watch", "--tag", "none"]).await;
    assert!(none.code == Some(4) && none.stderr.contains("no job has tag none"), "{none:?}");
    let none = dev.run(&["job", "results", "--tag", "none"]).await;
    assert!(none.code == Some(0) && none.stdout.is_empty(), "{none:?}");
    let costs = dev.run(&["budget", "cost", "--tag", "run=7", "-o", "json"]).await.json();
    assert_eq!(costs[0]["runs"], 20, "{costs}");
}

#[tokio::test]
async fn several_jobs_are_watched_and_a_failure_shows_in_the_exit_code() {
    let (dev, folder) = dev().await;
    let (jobs, broken) = ("jobs.jsonl", folder.path().join("broken.json"));
    let mixed = std::fs::read_to_string(folder.path().join(jobs)).unwrap()
        + &std::fs::read_to_string(broken).unwrap();
    std::fs::write(folder.path().join("mixed.jsonl"), mixed).unwrap();
    let watched = dev.run(&["job", "push", "mixed.jsonl", "--watch"]).await;
    assert_eq!(watched.code, Some(1), "{watched:?}");
    assert!(watched.stdout.starts_with("21 jobs enqueued with tag push-"), "{watched:?}");
    assert!(
        watched.stdout.contains("20 of 21 done, 1 failed (") && watched.stderr.contains("--state discarded")
    );

    let listed = dev.run(&["job", "ls", "--tag", "odd", "-o", "jsonl"]).await;
    let failed = &listed.lines()[0];
    assert_eq!((listed.lines().len(), &failed["state"]), (1, &json!("discarded")), "{listed:?}");
    let code = failed["error"]["code"].as_str().unwrap();
    let by_code = dev.run(&["job", "list", "--error-code", code, "--since", "1h", "-o", "ids"]).await;
    assert_eq!(by_code.stdout.trim(), failed["id"].as_str().unwrap());
    let all = dev.run(&["job", "list", "-n", "500", "-o", "ids"]).await;
    assert_eq!(all.stdout.lines().count(), 21);
    let table = dev.run(&["job", "list", "--tag", "odd"]).await;
    assert!(table.stdout.contains("AGE") && table.stdout.contains("DURATION"), "{table:?}");
    let wrong = dev.run(&["job", "list", "--since", "yesterday"]).await;
    assert!(wrong.code == Some(2) && wrong.stderr.contains("1h or 7d"), "{wrong:?}");
    let retried = dev.run(&["job", "retry", "--tag", "odd"]).await;
    assert!(retried.stdout.contains("1 of 1 jobs available again"), "{retried:?}");
}

#[tokio::test]
async fn a_workflow_is_watched_to_its_end() {
    let (dev, folder) = dev().await;
    let step = json!({"type": "agent.echo", "args": ["hi"], "ext_agent_model": "m"});
    let chain = json!({"type": "chain", "steps": [step, step]});
    std::fs::write(folder.path().join("chain.json"), chain.to_string()).unwrap();
    let watched = dev.run(&["workflow", "start", "chain.json", "--watch"]).await;
    assert_eq!(watched.code, Some(0), "{watched:?}");
    assert!(watched.stdout.trim_end().ends_with("2 of 2 done, completed"), "{watched:?}");
    let id = watched.stdout.lines().next().unwrap().to_owned();
    let again = dev.run(&["workflow", "watch", &id, "-o", "jsonl"]).await;
    assert_eq!((again.code, &again.lines()[0]["state"]), (Some(0), &json!("completed")), "{again:?}");
}
