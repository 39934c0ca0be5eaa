//! Faults of the database and of the way to it, and how soon the fleet is as fast as before.

use crate::Pace;
use crate::figures::Figure;
use crate::site::{Process, Site, now};
use std::time::Duration;
use turnstone_tests::servers::TcpProxy;

/// The share of the clean rate that counts as back.
const BACK: f64 = 0.95;
const AIM: &str = "within 5 s";

/// A fleet with work to do.
struct Fleet {
    pace: Pace,
    site: Site,
    proxy: TcpProxy,
    processes: Vec<Process>,
    /// How fast it is when nothing is wrong, to enqueue enough.
    usual: f64,
}

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    let site = Site::start(&[("max_connections", "330")]).await;
    let proxy = TcpProxy::start(site.postgres.addr()).await;
    let mut processes = vec![site.scheduler().await];
    for name in ["near-1", "near-2"] {
        processes.push(site.worker(name, 64, Duration::ZERO, "5s").await);
    }
    processes.push(site.worker_at(proxy.addr(), "far", 64, Duration::ZERO, "5s").await);
    let usual = site.clean(pace.seconds(4)).await;
    let fleet = Fleet { pace, site, proxy, processes, usual };
    let mut figures = vec![Figure::of("clean rate at the beginning", "jobs/s", vec![usual])];
    figures.extend(fleet.restarts().await);
    figures.extend(fleet.terminations().await);
    figures.extend(fleet.idle_connections().await);
    figures.extend(fleet.one_network(false).await);
    figures.extend(fleet.one_network(true).await);
    figures.push(fleet.black_hole().await);
    let pids: Vec<Option<u32>> = fleet.processes.iter().map(Process::pid).collect();
    let gone = pids.iter().filter(|pid| !pid.is_some_and(runs)).count();
    figures.push(
        Figure::of("processes that had to be restarted", "processes", vec![gone as f64])
            .aiming("none", |figure| figure.high == 0.0),
    );
    figures
}

fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

impl Fleet {
    /// Returns the clean rate just before a fault, because the machine's speed may have changed since the beginning.
    /// Enqueues enough work for the fault and the time after it.
    async fn clean(&self, fault: &str) -> f64 {
        eprintln!("measuring faults: {fault}");
        self.site.stock(self.usual * self.pace.seconds(10).as_secs_f64() + 100.0).await;
        let from = now();
        tokio::time::sleep(self.pace.seconds(4)).await;
        let clean = self.site.rates(from).await.usual(from, now());
        self.site.stock(clean.max(self.usual) * self.pace.seconds(30).as_secs_f64() + 100.0).await;
        clean
    }

    /// Watches the fleet from the moment when a fault is over.
    async fn back_to(&self, clean: f64, over: i64) -> Back {
        let watched = self.pace.seconds(11);
        tokio::time::sleep(watched).await;
        let rates = self.site.rates(over).await;
        self.site.had_work().await;
        let took = rates.reached(clean * BACK, over, now()).unwrap_or(watched).as_secs_f64();
        Back { took, clean, rates: rates.seconds(over, now()) }
    }

    async fn restarts(&self) -> [Figure; 2] {
        let mut took = Vec::new();
        for _ in 0..self.pace.times(2) {
            let clean = self.clean("a restart of PostgreSQL").await;
            self.site.postgres.restart_immediate().await;
            took.push(self.back_to(clean, now()).await);
        }
        figures("PostgreSQL restarted with -m immediate", took)
    }

    async fn terminations(&self) -> [Figure; 2] {
        let clean = self.clean("terminated connections").await;
        for _ in 0..self.pace.times(10) {
            self.site.postgres.terminate_connections(&self.site.database).await;
            tokio::time::sleep(self.pace.seconds(1)).await;
        }
        figures("connections terminated once a second for 10 s", vec![self.back_to(clean, now()).await])
    }

    async fn idle_connections(&self) -> [Figure; 2] {
        let clean = self.clean("idle connections").await;
        // The fleet's connections end while it is paused, and others take their places.
        self.processes.iter().for_each(|process| process.signal("STOP"));
        self.site.postgres.terminate_connections(&self.site.database).await;
        let idle = self.site.witness().take_all_connections().await;
        self.processes.iter().for_each(|process| process.signal("CONT"));
        tokio::time::sleep(self.pace.seconds(8)).await;
        let name = format!("{} idle connections took every place for 8 s", idle.len());
        drop(idle);
        figures(&name, vec![self.back_to(clean, now()).await])
    }

    /// A fault of one worker of three barely changes the fleet's rate, because the others continue.
    async fn one_network(&self, silent: bool) -> [Figure; 2] {
        let clean = self.clean(if silent { "a silent network" } else { "a cut network" }).await;
        if silent {
            self.proxy.stall().await
        } else {
            self.proxy.cut().await
        }
        tokio::time::sleep(self.pace.seconds(6)).await;
        self.proxy.heal().await;
        let what = if silent { "silent" } else { "cut" };
        figures(&format!("network of one worker {what} for 6 s"), vec![self.back_to(clean, now()).await])
    }
}

impl Fleet {
    /// Every connection of one worker from before the end of the fault carries nothing for ever.
    async fn black_hole(&self) -> Figure {
        let mut took = Vec::new();
        for _ in 0..self.pace.times(3) {
            let clean = self.clean("a black hole").await;
            self.site.stock(clean.max(self.usual) * self.pace.seconds(70).as_secs_f64()).await;
            self.proxy.silence().await;
            tokio::time::sleep(self.pace.seconds(6)).await;
            self.proxy.heal().await;
            let (over, watched) = (now(), self.pace.seconds(60).as_millis() as i64);
            let claimed = loop {
                match self.site.witness().claimed("far", over).await {
                    Some(at) => break at,
                    None if now() - over > watched => break now(),
                    None => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            };
            self.site.had_work().await;
            took.push((claimed - over) as f64 / 1_000.0);
        }
        Figure::of(
            "connections of one worker silent for ever, its network for 6 s: it claims again",
            "s",
            took,
        )
        .aiming(AIM, |figure| figure.high <= 5.0)
    }
}

/// How a fault ended.
struct Back {
    /// Seconds until the fleet was back; all the time that it was watched when it was not.
    took: f64,
    /// The clean rate.
    clean: f64,
    /// The rate in each second that it was watched.
    rates: Vec<f64>,
}

/// The time, and beside it the rates from the end of the fault on: they tell a fleet that is nearly back from one that
/// stands still.
fn figures(name: &str, backs: Vec<Back>) -> [Figure; 2] {
    let took = backs.iter().map(|back| back.took).collect();
    let clean = backs.iter().map(|back| back.clean).sum::<f64>() / backs.len() as f64;
    let rates = backs.into_iter().flat_map(|back| back.rates).collect();
    [
        Figure::of(name, "s", took).aiming(AIM, |figure| figure.high <= 5.0),
        Figure::of(format!("{name}, rate from then on"), "jobs/s", rates).beside(clean),
    ]
}
