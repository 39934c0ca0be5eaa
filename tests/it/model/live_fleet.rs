//! Deltas of a model in one process reach readers in another, over Redis.

use crate::program::{Program, run};
use futures::FutureExt;
use serde_json::{Value, json};
use turnstone_domain::EngagementId;
use turnstone_domain::ids::SystemIds;
use turnstone_store::Doorbell;
use turnstone_store::redis::RedisRelay;
use turnstone_tests::model_server::Gate;
use turnstone_tests::servers::{Postgres, Redis};
use turnstone_tests::{ModelServer, Reply, fleet, sse, wait};

/// Sends deltas until one arrives, because a subscription takes a moment.
async fn is_heard(from: &Doorbell, to: &Doorbell, engagement: &str) {
    let engagement = EngagementId::from(engagement);
    let mut ear = to.live().listen(&engagement);
    let speaker = from.live().speaker(engagement, "j".into(), 1);
    wait::until("a delta arrives", async || {
        speaker.say("x");
        ear.hear().now_or_never().is_some_and(|piece| piece.text.starts_with('x'))
    })
    .await;
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn deltas_reach_another_process_also_after_a_redis_outage() {
    let redis = Redis::start().await;
    let (one, other) = (Doorbell::default(), Doorbell::default());
    for bell in [&one, &other] {
        RedisRelay::start(&redis.url(), bell, &SystemIds).unwrap();
    }
    is_heard(&one, &other, "a").await;
    redis.kill().await;
    redis.start_again().await;
    is_heard(&other, &one, "b").await;
}

/// Issue 5, "Streaming": two processes with Redis.
#[tokio::test]
#[cfg_attr(any(no_postgres, no_redis), ignore = "needs PostgreSQL and Redis")]
async fn a_workers_deltas_reach_the_api_of_another_process() {
    fleet::install_crypto();
    let database = Postgres::shared().await.database().await;
    let redis = Redis::start().await;
    let (begin, go_on) = (Gate::default(), Gate::default());
    let (held, rest) = (begin.clone(), go_on.clone());
    let models = ModelServer::start(move |_| {
        Reply::Spoken(vec!["first ".to_owned(), "second".to_owned()], rest.clone()).behind(&held)
    })
    .await;
    let folder = turnstone_tests::scratch::folder();
    let settings = format!(
        "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n",
        models.url
    );
    std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
    let redis_url = redis.url();
    let env = [("DATABASE_URL", database.url.as_str()), ("REDIS_URL", redis_url.as_str())];
    assert_eq!(run(folder.path(), &["migrate"], &env).await.code, Some(0));
    let mut api = Program::start(folder.path(), &["api", "--bind", "127.0.0.1:0"], &env);
    let url = api.first_line("turnstone listens on ").await;
    let mut worker = Program::start(folder.path(), &["worker", "--name", "one"], &env);
    worker.first_line("turnstone worker one runs ").await;

    let job = json!({"type": "agent.ask", "args": ["hi"], "ext_agent_model": "m"});
    let http = turnstone_tests::http::client();
    let pushed: Value =
        http.post(format!("{url}/ojs/v1/jobs")).json(&job).send().await.unwrap().json().await.unwrap();
    let engagement = pushed["job"]["ext_agent_engagement_id"].as_str().unwrap().to_owned();
    let events = format!("{url}/engagements/{engagement}/events");

    // The model answers when the API has subscribed, and continues when the delta has arrived.
    let subscribed = async {
        wait::until("the api has subscribed", async || {
            redis.command(&["PUBSUB", "CHANNELS", "turnstone:live:*"]).await.contains(&engagement)
        })
        .await;
        begin.open();
    };
    let reading = sse::read(&events, None, |seen| {
        if seen.iter().any(|event| event.event == "delta") {
            go_on.open();
        }
        false
    });
    let both = async { tokio::join!(reading, subscribed).0 };
    let all = wait::output("the job ends", Box::pin(both)).await;
    let heard: Vec<&str> =
        all.iter().filter(|event| event.event == "delta").map(|event| event.data.as_str()).collect();
    assert!(heard.first().is_some_and(|data| data.contains("first ")), "{heard:?}");
    assert_eq!(all.last().unwrap().event, "job.completed");
}
