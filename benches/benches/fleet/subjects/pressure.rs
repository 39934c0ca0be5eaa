//! Load by other clients of the database, and too much work.

use crate::Pace;
use crate::figures::Figure;
use crate::site::{Process, Site, now};
use futures::future::join_all;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long the fleet is watched before, in seconds.
const CLEAN: u64 = 4;
/// How long each pressure lasts.
const LASTS: u64 = 15;
/// How long the fleet is watched afterwards.
const AFTER: u64 = 5;
/// The stock, as a multiple of the jobs that the fleet usually runs while it is watched.
const STOCK: f64 = 2.0;
/// The number of reported relations.
const RELATIONS: usize = 3;

/// A fleet with work to do.
struct Fleet {
    pace: Pace,
    site: Site,
    /// How fast it is when nothing presses, to enqueue enough.
    usual: f64,
    _processes: Vec<Process>,
}

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    let site = Site::start(&[]).await;
    let mut processes = vec![site.scheduler().await];
    for name in ["one", "two"] {
        processes.push(site.worker(name, 64, Duration::ZERO, "15s").await);
    }
    let usual = site.clean(pace.seconds(4)).await;
    let fleet = Fleet { pace, site, usual, _processes: processes };
    let mut figures = vec![Figure::of("clean rate at the beginning", "jobs/s", vec![usual])];
    figures.extend(fleet.forgotten_transaction().await);
    figures.extend(fleet.readers().await);
    figures.extend(fleet.too_much("1.5 × what it can do", 1.5, LASTS).await);
    figures.extend(fleet.too_much("10 × what it can do for 2 s", 10.0, 2).await);
    figures
}

/// The state before the pressure.
struct Before {
    /// The rate.
    clean: f64,
    /// Dead rows by relation.
    dead: BTreeMap<String, i64>,
}

impl Fleet {
    async fn forgotten_transaction(&self) -> Vec<Figure> {
        let name = "a transaction left open";
        let before = self.begin().await;
        let from = now();
        let forgotten = self.site.witness().forgotten_transaction().await;
        tokio::time::sleep(self.pace.seconds(LASTS)).await;
        let until = now();
        drop(forgotten);
        self.figures(name, &before, from, until).await
    }

    async fn readers(&self) -> Vec<Figure> {
        let name = "four REPEATABLE READ readers";
        let before = self.begin().await;
        let from = now();
        let readers = join_all((0..4).map(|_| self.site.witness().reader())).await;
        tokio::time::sleep(self.pace.seconds(LASTS)).await;
        let until = now();
        drop(readers);
        self.figures(name, &before, from, until).await
    }

    /// Enqueues so many times what the fleet can do, tenth of a second by tenth of a second.
    async fn too_much(&self, name: &str, times: f64, seconds: u64) -> Vec<Figure> {
        let before = self.begin().await;
        let from = now();
        let (began, lasts) = (Instant::now(), self.pace.seconds(LASTS));
        let offered = self.pace.seconds(seconds);
        let mut pushed = 0;
        while began.elapsed() < offered {
            let due = (began.elapsed().as_secs_f64() * before.clean * times) as usize;
            pushed += self.site.push(due.saturating_sub(pushed)).await.len();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(lasts.saturating_sub(began.elapsed())).await;
        self.figures(name, &before, from, now()).await
    }

    /// Puts enough work before the fleet, and looks at it just before the pressure: the machine may be slower or faster
    /// by then than it was at the beginning.
    async fn begin(&self) -> Before {
        self.site.stock(self.usual * STOCK * self.pace.seconds(CLEAN).as_secs_f64() + 100.0).await;
        let from = now();
        tokio::time::sleep(self.pace.seconds(CLEAN)).await;
        let clean = self.site.rates(from).await.usual(from, now());
        let watched = self.pace.seconds(LASTS + AFTER).as_secs_f64();
        self.site.stock(clean.max(self.usual) * STOCK * watched + 100.0).await;
        Before { clean, dead: self.site.witness().dead_rows().await.into_iter().collect() }
    }

    async fn figures(&self, name: &str, before: &Before, from: i64, until: i64) -> Vec<Figure> {
        tokio::time::sleep(self.pace.seconds(AFTER)).await;
        self.site.had_work().await;
        let (rates, after) = (self.site.rates(from).await, now());
        let meanwhile = Figure::of(name, "jobs/s", rates.seconds(from, until)).beside(before.clean);
        let afterwards = Figure::of(format!("{name}, afterwards"), "jobs/s", rates.seconds(until, after));
        let mut figures = vec![
            meanwhile.aiming("at least 70 % of clean", |figure| figure.share_of_clean >= Some(0.7)),
            afterwards
                .beside(before.clean)
                .aiming("100 % of clean, give or take 5", |figure| figure.share_of_clean >= Some(0.95)),
        ];
        let dead = self.site.witness().dead_rows().await;
        figures.extend(dead.into_iter().take(RELATIONS).map(|(relation, rows)| {
            let had = before.dead.get(&relation).copied().unwrap_or_default();
            let name = format!("{name}, dead rows of {relation} afterwards");
            Figure::of(name, "rows", vec![rows as f64]).after(had as f64)
        }));
        figures
    }
}
