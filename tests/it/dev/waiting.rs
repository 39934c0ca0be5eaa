//! Why a job does not run, and how it ended: watching, listing, pushing.

use super::Dev;
use serde_json::{Value, json};
use turnstone_tests::ToolServer;

async fn dev() -> (Dev, ToolServer, tempfile::TempDir) {
    super::commands::dev().await
}

async fn post(dev: &Dev, path: &str, body: Value) -> Value {
    let answer = dev.http.post(format!("{}{path}", dev.url)).json(&body).send().await.expect("an answer");
    let status = answer.status();
    let answer: Value = answer.json().await.expect("JSON");
    assert!(status.is_success(), "POST {path}: {status} {answer}");
    answer
}

/// Fetches the only job of the default queue.
async fn fetch(dev: &Dev) -> String {
    let fetched = post(dev, "/ojs/v1/workers/fetch", json!({"queues": ["default"]})).await;
    fetched["jobs"][0]["id"].as_str().expect("a job").to_owned()
}

#[tokio::test]
async fn a_plain_job_without_a_worker_is_a_warning_of_push_get_and_list() {
    let (dev, _tools, _folder) = dev().await;
    let pushed = dev.run(&["job", "push", "--type", "agent.ask", "--set", "ext_agent_tokenbudget=5"]).await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    assert!(pushed.stderr.contains("did you mean `ext_agent_token_budget`?"), "{pushed:?}");
    assert!(pushed.stderr.contains("no worker over HTTP fetches from queue default"), "{pushed:?}");
    let id = pushed.stdout.trim();
    let got = dev.run(&["job", "get", id]).await;
    assert!(got.stdout.contains("waits for") && got.stdout.contains("--agent"), "{got:?}");
    assert!(
        got.stdout.lines().any(|line| line.starts_with("failures") && line.ends_with("0 of 3")),
        "{got:?}"
    );
    assert_eq!(dev.run(&["queue", "pause", "default"]).await.code, Some(0));
    let listed = dev.run(&["job", "list"]).await;
    assert!(
        listed.stdout.contains("WAITS FOR") && listed.stdout.contains("turnstone queue resume default"),
        "{listed:?}"
    );
    let answer =
        post(&dev, "/ojs/v1/jobs", json!({"type": "a", "args": [], "ext_agent_tokenbudget": 5})).await;
    assert!(answer["warnings"][0].as_str().unwrap().contains("ext_agent_tokenbudget"), "{answer}");
}

#[tokio::test]
async fn watching_continues_after_a_retry_and_prints_the_whole_error() {
    let (dev, _tools, _folder) = dev().await;
    let pushed =
        dev.run(&["job", "push", "--type", "mail.send", "--set", r#"retry={"max_attempts": 1}"#]).await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    let id = fetch(&dev).await;
    let message = format!("the mail server is away{} for good", ", and away".repeat(40));
    let error = json!({"code": "smtp_down", "message": message, "retryable": false});
    post(&dev, "/ojs/v1/workers/nack", json!({"job_id": id, "error": error})).await;
    let watched = dev.run(&["job", "watch", &id]).await;
    assert_eq!(watched.code, Some(1), "{watched:?}");
    assert!(watched.stdout.contains(&format!("error of {id}:\nsmtp_down: {message}")), "{watched:?}");
    assert_eq!(dev.run(&["job", "retry", &id]).await.code, Some(0));
    assert_eq!(fetch(&dev).await, id);
    post(&dev, "/ojs/v1/workers/ack", json!({"job_id": id, "result": "sent"})).await;
    let watched = dev.run(&["job", "watch", &id]).await;
    assert_eq!(watched.code, Some(0), "{watched:?}");
    for part in ["discarded", "it was retried", "sent"] {
        assert!(watched.stdout.contains(part), "{part} is missing: {watched:?}");
    }
    let refused = dev.run(&["job", "retry", "--state", "completed", "--dry-run"]).await;
    assert!(refused.code == Some(2) && refused.stderr.contains("cannot be retried"), "{refused:?}");
}

#[tokio::test]
async fn an_array_is_pushed_whole_or_not_at_all_and_lines_keep_their_order() {
    let (dev, _tools, folder) = dev().await;
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("array.json", r#"[{"type": "good.one", "args": []}, {"type": "Bad One", "args": []}]"#);
    let refused = dev.run(&["job", "push", "array.json"]).await;
    assert!(refused.code == Some(1) && refused.stderr.contains("jobs[1]"), "{refused:?}");
    assert!(dev.run(&["job", "list", "-o", "ids"]).await.stdout.trim().is_empty());
    let lines: Vec<String> = (0..30).map(|n| json!({"type": "mail.send", "args": [n]}).to_string()).collect();
    write("lines.jsonl", &lines.join("\n"));
    let pushed = dev.run(&["job", "push", "lines.jsonl"]).await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    let fetched = post(&dev, "/ojs/v1/workers/fetch", json!({"queues": ["default"], "count": 30})).await;
    let order: Vec<i64> =
        fetched["jobs"].as_array().unwrap().iter().map(|job| job["args"][0].as_i64().unwrap()).collect();
    assert_eq!(order, (0..30).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_parked_job_names_its_reviewer_and_the_review_its_call() {
    let (dev, _tools, _folder) = dev().await;
    let pushed = dev
        .run(&["job", "push", "--type", "agent.book", "--agent", "booker", "--args", "[\"book it\"]"])
        .await;
    let id = pushed.stdout.trim();
    dev.events(id, |name, _| name == "job.parked").await;
    let listed = dev.run(&["review", "list"]).await;
    assert!(listed.stdout.contains(r#"book {"price":640}"#), "{listed:?}");
    let review = dev.run(&["review", "list", "-o", "ids"]).await;
    let review = review.stdout.trim();
    for command in [&["job", "get", id][..], &["job", "list", "--state", "pending"]] {
        let said = dev.run(command).await;
        assert!(said.stdout.contains(&format!("review {review} by manager")), "{said:?}");
    }
    let shown = dev.run(&["review", "show", review]).await;
    for part in
        ["\"price\": 640", id, "agent       booker", "before it   no calls", "--by manager --reason TEXT"]
    {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
}

#[tokio::test]
async fn budgets_and_queues_print_their_settings_and_refuse_unknown_ones() {
    let (dev, _tools, _folder) = dev().await;
    assert_eq!(dev.run(&["budget", "set", "fleet", "--tokens-per-day", "500"]).await.code, Some(0));
    let refused = dev.run(&["budget", "raise", "fleet", "--tokens", "100"]).await;
    assert!(refused.code == Some(1) && refused.stderr.contains("it limits tokens_per_day"), "{refused:?}");
    let listed = dev.run(&["budget", "list"]).await;
    assert!(listed.stdout.contains("retry") && listed.stdout.contains("day"), "{listed:?}");
    let negative = dev.run(&["budget", "set", "fleet", "--tokens", "-4"]).await;
    assert!(negative.code == Some(2) && negative.stderr.contains("not negative"), "{negative:?}");
    assert_eq!(
        dev.run(&["queue", "set", "mail", "--max-depth", "9", "--concurrency", "2"]).await.code,
        Some(0)
    );
    let set = dev.run(&["queue", "set", "mail", "--max-depth", "none", "--per-second", "5"]).await;
    assert_eq!(set.stdout.trim(), "mail: concurrency 2, per-second 5", "{set:?}");
    let shown = dev.run(&["queue", "show", "mail"]).await;
    assert!(shown.stdout.contains("concurrency 2, per-second 5"), "{shown:?}");
    let refused = dev.run(&["webhook", "add", "https://example.com/", "--events", "job.complet"]).await;
    assert!(refused.code == Some(2) && refused.stderr.contains("did you mean job.completed"), "{refused:?}");
}

#[tokio::test]
async fn an_unknown_provider_causes_no_fallback_and_no_retry() {
    let (dev, _tools, _folder) = dev().await;
    let pushed = dev
        .run(&[
            "job",
            "push",
            "--type",
            "agent.echo",
            "--args",
            "[\"hi\"]",
            "--set",
            "ext_agent_provider=zzz",
            "--watch",
        ])
        .await;
    assert_eq!(pushed.code, Some(1), "{pushed:?}");
    assert!(pushed.stdout.contains("no provider `zzz` is configured"), "{pushed:?}");
    assert!(!pushed.stdout.contains("attempt 2"), "{pushed:?}");
}
