//! `--enable-reset`: a server can be emptied with the flag, and refuses it without.

use super::{Dev, run_in};
use serde_json::json;

async fn reset(dev: &Dev) -> u16 {
    let url = format!("{}/ojs/v1/admin/reset", dev.url);
    dev.http.post(url).send().await.expect("an answer").status().as_u16()
}

async fn jobs(dev: &Dev) -> i64 {
    dev.get("/ojs/v1/jobs").await["pagination"]["total"].as_i64().expect("a number")
}

async fn push(dev: &Dev) {
    let url = format!("{}/ojs/v1/jobs", dev.url);
    let job = json!({"type": "a.b", "args": [], "options": {"queue": "another"}});
    let answer = dev.http.post(url).json(&job).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 201);
}

#[tokio::test]
async fn a_server_with_the_flag_is_emptied() {
    let folder = turnstone_tests::scratch::folder();
    let dev = Dev::start(folder.path(), &["--enable-reset"]).await;
    for _ in 0..3 {
        push(&dev).await;
        assert_eq!(jobs(&dev).await, 1);
        assert_eq!(reset(&dev).await, 200);
        assert_eq!(jobs(&dev).await, 0);
    }
    assert!(!dev.get("/agents").await.to_string().is_empty(), "agents are kept");
}

#[tokio::test]
async fn without_the_flag_no_endpoint_resets() {
    let folder = turnstone_tests::scratch::folder();
    let dev = Dev::start(folder.path(), &[]).await;
    push(&dev).await;
    assert_eq!(reset(&dev).await, 404);
    assert_eq!(jobs(&dev).await, 1);
}

#[tokio::test]
async fn the_flag_is_refused_at_a_reachable_address() {
    let folder = turnstone_tests::scratch::folder();
    for command in [&["dev", "--data", "data"] as &[&str], &["api"]] {
        let ran =
            run_in(folder.path(), &[command, &["--bind", "0.0.0.0:0", "--enable-reset"]].concat()).await;
        assert!(
            ran.code != Some(0) && ran.stderr.contains("--enable-reset is refused on 0.0.0.0:0"),
            "{ran:?}"
        );
    }
}
