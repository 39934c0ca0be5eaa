//! The real program with Redis and PostgreSQL: how it continues when Redis dies, and which Redis it refuses.

use crate::program::{Program, Ran, run};
use futures::future::join_all;
use serde_json::{Value, json};
use std::path::Path;
use turnstone_tests::servers::{Database, Postgres, Redis};
use turnstone_tests::{Gate, ModelServer, Reply, fleet, sse, wait};

/// The folder, database, Redis and model of a fleet.
struct Site {
    folder: tempfile::TempDir,
    database: Database,
    redis: Redis,
    _models: ModelServer,
}

/// Model calls that are held before their first delta and after it.
#[derive(Clone, Default)]
struct Held {
    begin: Gate,
    go_on: Gate,
}

impl Held {
    fn reply(&self) -> Reply {
        Reply::Spoken(vec!["first ".to_owned(), "second".to_owned()], self.go_on.clone()).behind(&self.begin)
    }
}

impl Site {
    async fn start() -> Self {
        Self::with(|_| Reply::text("done")).await
    }

    async fn with(script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        fleet::install_crypto();
        let database = Postgres::shared().await.database().await;
        let (redis, models) = (Redis::start().await, ModelServer::start(script).await);
        let folder = turnstone_tests::scratch::folder();
        let settings = format!(
            "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n\
             [limits.'test/m']\nrequests_per_minute = 60_000\ntokens_per_minute = 60_000_000\n",
            models.url
        );
        std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
        let site = Self { folder, database, redis, _models: models };
        let migrated = site.run(&["migrate"], &site.redis.url()).await;
        assert_eq!(migrated.code, Some(0), "{migrated:?}");
        site
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    async fn run(&self, arguments: &[&str], redis: &str) -> Ran {
        run(self.path(), arguments, &[("DATABASE_URL", &self.database.url), ("REDIS_URL", redis)]).await
    }

    fn service(&self, arguments: &[&str]) -> Program {
        let env = [("DATABASE_URL", self.database.url.as_str()), ("REDIS_URL", &self.redis.url())];
        Program::start(self.path(), arguments, &env)
    }

    /// Enqueues three jobs with this input and holds their calls. Redis is broken while all calls are running and
    /// each stream has received its first delta. The calls continue when `broken` ends, and every stream ends with a
    /// completed job.
    async fn complete_through(&self, url: &str, input: &str, held: &Held, broken: impl Future<Output = ()>) {
        let http = turnstone_tests::http::client();
        let job = json!({"type": "agent.ask", "args": [input], "ext_agent_model": "m"});
        let mut engagements = Vec::new();
        for _ in 0..3 {
            let sent = http.post(format!("{url}/ojs/v1/jobs")).json(&job).send().await.unwrap();
            let pushed: Value = sent.json().await.unwrap();
            engagements.push(pushed["job"]["ext_agent_engagement_id"].as_str().unwrap().to_owned());
        }
        let heard: Vec<Gate> = engagements.iter().map(|_| Gate::default()).collect();
        let reading = join_all(engagements.iter().zip(&heard).map(async |(engagement, heard)| {
            let events = format!("{url}/engagements/{engagement}/events");
            let all = sse::read(&events, None, |seen| {
                if seen.last().is_some_and(|event| event.event == "delta") {
                    heard.open();
                }
                false
            });
            all.await.pop().unwrap().event
        }));
        let breaking = async {
            wait::until("the api has subscribed", async || {
                let channels = self.redis.command(&["PUBSUB", "CHANNELS", "turnstone:live:*"]).await;
                engagements.iter().all(|engagement| channels.contains(engagement))
            })
            .await;
            held.begin.open();
            for heard in &heard {
                heard.passed().await;
            }
            broken.await;
            held.go_on.open();
        };
        let both = async { tokio::join!(reading, breaking).0 };
        let last = wait::output("every stream ends", both).await;
        assert_eq!(last, ["job.completed"; 3], "{input}");
    }

    /// Enqueues jobs and waits until they are completed.
    async fn complete(&self, url: &str, jobs: usize) {
        let agent_job = ["--type", "agent.ask", "--args", "[\"hi\"]", "--set", "ext_agent_model=m"];
        for _ in 0..jobs {
            let push = [&["job", "push", "-o", "ids", "--url", url][..], &agent_job].concat();
            let pushed = run(self.path(), &push, &[]).await;
            assert_eq!(pushed.code, Some(0), "{pushed:?}");
            let id = pushed.stdout.trim();
            let watched = run(self.path(), &["job", "watch", id, "--url", url], &[]).await;
            assert_eq!(watched.code, Some(0), "{watched:?}");
        }
    }
}

/// Redis is flushed and then killed during calls whose deltas it carries.
#[tokio::test]
#[cfg_attr(any(no_postgres, no_redis), ignore = "needs PostgreSQL and Redis")]
async fn a_fleet_outlives_its_redis_and_logs_it() {
    let (flushed, killed) = (Held::default(), Held::default());
    let held = [("flush", flushed.clone()), ("kill", killed.clone())];
    let site = Site::with(move |request| {
        let said = request["messages"].to_string();
        let of_input = held.iter().find(|(input, _)| said.contains(input));
        of_input.map_or(Reply::text("done"), |(_, held)| held.reply())
    })
    .await;
    let mut api = site.service(&["api", "--bind", "127.0.0.1:0"]);
    let url = api.first_line("turnstone listens on ").await;
    let mut worker = site.service(&["worker", "--name", "one"]);
    worker.first_line("turnstone worker one runs ").await;
    site.complete(&url, 2).await;
    let buckets = site.redis.command(&["KEYS", "turnstone:limit:*"]).await;
    assert!(buckets.contains("[\"test\",\"m\",\"\"]"), "the calls were counted in Redis: {buckets}");

    Box::pin(site.complete_through(&url, "flush", &flushed, site.redis.flush())).await;
    site.complete(&url, 2).await;
    Box::pin(site.complete_through(&url, "kill", &killed, async {
        site.redis.kill().await;
        worker.warns("Redis does not answer").await;
        api.warns("Redis does not answer").await;
    }))
    .await;
    site.complete(&url, 3).await;
    worker.warns("this worker keeps to its own share of each limit").await;

    site.redis.start_again().await;
    worker.warns("Redis is back").await;
    api.warns("Redis is back").await;
    wait::until("the worker uses Redis again", async || {
        site.complete(&url, 1).await;
        worker.warned().contains("rate limits are shared by the whole fleet again")
    })
    .await;
    for reported in
        ["keeps to its own share", "Redis does not answer", "Redis is back", "by the whole fleet again"]
    {
        assert_eq!(
            worker.warned().matches(reported).count(),
            1,
            "{reported:?} is logged once:\n{}",
            worker.warned()
        );
    }
    for reported in ["Redis does not answer", "Redis is back"] {
        assert_eq!(
            api.warned().matches(reported).count(),
            1,
            "{reported:?} is logged once:\n{}",
            api.warned()
        );
    }
    worker.stop().await;
    api.stop().await;
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_redis), ignore = "needs PostgreSQL and Redis")]
async fn a_redis_that_evicts_keys_is_refused() {
    let site = Site::start().await;
    let redis = site.redis.url();
    site.redis.config("maxmemory", "100mb").await;
    site.redis.config("maxmemory-policy", "allkeys-lru").await;
    for arguments in [&["worker"][..], &["scheduler"], &["api", "--bind", "127.0.0.1:0"]] {
        let refused = site.run(arguments, &redis).await;
        assert_eq!(refused.code, Some(1), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("maxmemory-policy allkeys-lru"), "{arguments:?}: {refused:?}");
        let refused = site.run(arguments, "http://:secret-word@nowhere").await;
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("redis://host"), "{arguments:?}: {refused:?}");
        assert!(!refused.stderr.contains("secret-word"), "{refused:?}");
    }
    let doctor = site.run(&["doctor", "-o", "json"], &redis).await;
    let found = doctor.json();
    let trouble: Vec<_> = found.as_array().unwrap().iter().filter(|found| found["ok"] == false).collect();
    assert_eq!((doctor.code, trouble.len()), (Some(1), 1), "{found:#}");
    assert!(trouble[0]["advice"].as_str().unwrap().contains("noeviction"), "{found:#}");
    site.redis.config("maxmemory-policy", "noeviction").await;
    assert_eq!(site.run(&["doctor"], &redis).await.code, Some(0));
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_redis), ignore = "needs PostgreSQL and Redis")]
async fn a_worker_starts_without_its_redis_and_finds_it_later() {
    let site = Site::start().await;
    site.redis.stop().await;
    let mut worker = site.service(&["worker", "--name", "one"]);
    worker.first_line("turnstone worker one runs ").await;
    worker.warns("Redis does not answer").await;
    assert_eq!(site.run(&["doctor"], &site.redis.url()).await.code, Some(1));
    site.redis.start_again().await;
    worker.warns("Redis is back").await;
    worker.stop().await;
}
