//! A primary and a standby, and an address that moves from one to the other at a failover.

use crate::faults::site::{Api, Site};
use crate::program::Program;
use serde_json::Value;
use std::fmt::Write as _;
use turnstone_tests::servers::{Postgres, TcpProxy, WITH_STANDBYS};
use turnstone_tests::{Reply, ToolServer, wait};

/// The standby's name.
const STANDBY: &str = "second";
/// The lease of agent jobs. It outlasts a failover, so that workers continue with the leases that they hold.
const LEASE: &str = "6s";
/// Turns at once of each worker.
const SLOTS: &str = "6";
/// The least lag of a standby that was cut off.
const LAG: f64 = 1.0;

/// The kinds of replication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Replication {
    /// Commits wait for the standby, with this `synchronous_commit`.
    Synchronous(&'static str),
    /// Commits do not wait for the standby.
    Asynchronous,
}

/// The servers, and the site whose processes reach them through one address.
pub(super) struct Cluster {
    pub(super) site: Site,
    pub(super) tools: ToolServer,
    standby: Postgres,
    /// The path of the log from the primary to the standby.
    stream: TcpProxy,
    /// The address of the database for every process.
    address: TcpProxy,
}

impl Cluster {
    pub(super) async fn start(
        replication: Replication,
        script: impl Fn(&Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let mut site = Site::answering(WITH_STANDBYS, script).await;
        let tools = ToolServer::start().await;
        let file = site.path().join("turnstone.toml");
        let mut settings = std::fs::read_to_string(&file).expect("the settings");
        for (name, idempotent) in [("search", true), ("book", false)] {
            let _ = write!(
                settings,
                "[tools.{name}]\ndescription = 'a tool'\nmethod = 'POST'\nurl = '{}/{name}'\n\
                 idempotent = {idempotent}\nallow_private = true\n",
                tools.url
            );
        }
        std::fs::write(&file, settings).expect("the settings");
        let stream = TcpProxy::start(site.postgres.addr()).await;
        let standby = site.postgres.standby(STANDBY, stream.addr()).await;
        if let Replication::Synchronous(commit) = replication {
            site.postgres.configure("synchronous_commit", commit).await;
            site.postgres.configure("synchronous_standby_names", STANDBY).await;
        }
        let address = TcpProxy::start(site.postgres.addr()).await;
        site.database.url = site.database.url_at(address.addr());
        Self { site, tools, standby, stream, address }
    }

    /// Starts an API process, a scheduler and two workers.
    pub(super) async fn fleet(&self) -> Fleet {
        let url = &self.site.database.url;
        let (api, scheduler) = (self.site.api(url).await, self.site.scheduler().await);
        let mut fleet = Fleet { api, scheduler, workers: Vec::new() };
        for name in ["near-1", "near-2"] {
            let arguments = ["worker", "--name", name, "--slots", SLOTS, "--lease", LEASE];
            let mut worker = Program::start(self.site.path(), &arguments, &[("DATABASE_URL", url)]);
            worker.first_line(&format!("turnstone worker {name} runs ")).await;
            fleet.workers.push(worker);
        }
        fleet
    }

    /// Cuts the standby off, and waits until it misses a second of commits. It has all commits before the call.
    pub(super) async fn cut_off_the_standby(&self) {
        self.site.postgres.until_streams_to(STANDBY).await;
        self.stream.cut().await;
        let lag = "SELECT extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())";
        wait::until("the standby misses a second of commits", async || {
            let lag: f64 = self.standby.psql(&self.site.database, lag).await.parse().expect("a lag");
            lag > LAG
        })
        .await;
    }

    /// Loses the primary, promotes the standby, and moves the address. In an `isolated` loss the network goes before the
    /// server, so that it commits what no client learns of.
    pub(super) async fn fail_over(&mut self, isolated: bool) {
        if isolated {
            self.address.cut().await;
        }
        self.site.postgres.stop_immediate().await;
        self.address.cut().await;
        self.stream.cut().await;
        self.standby.promote().await;
        self.address.switch_to(self.standby.addr()).await;
        std::mem::swap(&mut self.site.postgres, &mut self.standby);
    }
}

/// The processes of the fleet.
pub(super) struct Fleet {
    pub(super) api: Api,
    scheduler: Program,
    workers: Vec<Program>,
}

impl Fleet {
    /// Stops every process; each must be the one that was started, and end with 0.
    pub(super) async fn stop(self) {
        for mut program in self.workers.into_iter().chain([self.scheduler, self.api.program]) {
            assert!(program.runs(), "a process ended in the failover:\n{}", program.warned());
            program.stop().await;
        }
    }
}
