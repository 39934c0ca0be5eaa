//! Failovers of a fleet in one process, at chosen moments.

use super::load::{self, repeated};
use super::readers::Reader;
use super::record::holes;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use turnstone_tests::model_server::outcomes;
use turnstone_tests::servers::{Postgres, TcpProxy, WITH_STANDBYS};
use turnstone_tests::{Fleet, Gate, Reply};

const JOBS: usize = 6;

/// A fleet whose database fails over.
struct Site {
    fleet: Fleet,
    primary: Postgres,
    standby: Postgres,
    stream: TcpProxy,
    address: TcpProxy,
}

impl Site {
    async fn start(script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let primary = Postgres::own_with(WITH_STANDBYS).await;
        let mut database = primary.database().await;
        let (stream, address) =
            (TcpProxy::start(primary.addr()).await, TcpProxy::start(primary.addr()).await);
        database.url = database.url_at(address.addr());
        let fleet =
            Fleet::builder().on_database(database).in_real_time().workers(0).model(script).start().await;
        let standby = primary.standby("second", stream.addr()).await;
        Self { fleet, primary, standby, stream, address }
    }

    /// Adds a worker whose lease outlasts the failover.
    fn work(&mut self) {
        self.fleet.add_worker_with(8, |mut deps| {
            deps.options.lease = Duration::from_secs(4);
            deps
        });
    }

    async fn fail_over(&self) {
        self.primary.stop_immediate().await;
        self.standby.promote().await;
        self.address.switch_to(self.standby.addr()).await;
    }

    async fn completed(&self, jobs: usize) {
        let completed = "SELECT count(*) FROM jobs WHERE state = 'completed'";
        let jobs = i64::try_from(jobs).expect("a few");
        self.fleet.until("the jobs complete", async || self.fleet.number(completed).await == jobs).await;
    }
}

fn job(input: &str) -> Value {
    json!({"type": "agent.search", "args": [input], "ext_agent_model": "m", "ext_agent_tools": [{"name": "search"}],
           "ext_agent_token_budget": 50_000})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_small_fleet_fails_over_to_a_synchronous_standby() {
    let mut site = Site::start(load::model).await;
    site.primary.configure("synchronous_standby_names", "second").await;
    site.work();
    let _scheduler = site.fleet.keep_time();
    let reader = Reader::of_stream(&site.fleet.url);
    for n in 0..JOBS {
        site.fleet.push(&job(&n.to_string())).await;
    }
    site.fleet.models.seen(2 * JOBS).await;
    site.fail_over().await;
    site.completed(JOBS).await;
    assert_eq!(site.fleet.number("SELECT count(*) FROM jobs WHERE attempt <> 1").await, 0);
    let repeated = repeated(&site.fleet.models, &site.fleet.tools);
    assert_eq!((repeated.model, repeated.tools), (0, 0), "{repeated:?}");
    let verdict = reader.verdict(&site.fleet.url).await;
    assert!(!verdict.is_silent() && verdict.resets == 0, "{verdict:?}");
    site.fleet.end().await;
}

/// The standby has the first turn, and misses the second one. The worker waits for the model in the third.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_with_a_newer_record_than_the_promoted_standby_writes_no_hole() {
    let gates: [Gate; 2] = Default::default();
    let held = gates.clone();
    let mut site = Site::start(move |request| {
        let turn = outcomes(request);
        let reply = match turn {
            0..3 => Reply::call("search", json!({"turn": turn})),
            _ => Reply::text("done"),
        };
        match turn {
            1 | 2 => reply.behind(&held[turn - 1]),
            _ => reply,
        }
    })
    .await;
    site.work();
    let _scheduler = site.fleet.keep_time();
    site.fleet.push(&job("go")).await;
    site.fleet.models.seen(2).await;
    site.primary.until_streams_to("second").await;
    site.stream.cut().await;
    gates[0].open();
    site.fleet.models.seen(3).await;
    site.fail_over().await;
    gates[1].open();
    site.completed(1).await;
    assert_eq!(holes(&site.fleet.url).await, Vec::<String>::new());
    for turn in 0..3 {
        let calls = site.fleet.tools.calls();
        let keys: BTreeSet<&str> =
            calls.iter().filter(|call| call.input["turn"] == turn).map(|call| call.key.as_str()).collect();
        assert_eq!(keys.len(), 1, "turn {turn} was called under several keys: {keys:?}");
    }
    site.fleet.end().await;
}
