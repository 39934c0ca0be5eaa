//! What others do to the database, and too much work.

use crate::Pace;
use crate::figures::Figure;
use crate::site::{Process, Site, now};
use futures::future::join_all;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long each pressure lasts.
const LASTS: u64 = 15;
/// How long the fleet is watched afterwards.
const AFTER: u64 = 5;
/// How many relations are told of.
const RELATIONS: usize = 3;

/// A fleet with work to do, and how fast it is when nothing presses.
struct Fleet {
    pace: Pace,
    site: Site,
    clean: f64,
    _processes: Vec<Process>,
}

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    let site = Site::start(&[]).await;
    let mut processes = vec![site.scheduler().await];
    for name in ["one", "two"] {
        processes.push(site.worker(name, 64, Duration::ZERO, "15s").await);
    }
    let clean = site.clean(pace.seconds(8)).await;
    let fleet = Fleet { pace, site, clean, _processes: processes };
    let mut figures = vec![Figure::of("clean rate", "jobs/s", vec![clean])];
    figures.extend(fleet.forgotten_transaction().await);
    figures.extend(fleet.readers().await);
    figures.extend(fleet.too_much("1.5 × what it can do", 1.5, LASTS).await);
    figures.extend(fleet.too_much("10 × what it can do for 2 s", 10.0, 2).await);
    figures
}

impl Fleet {
    async fn forgotten_transaction(&self) -> Vec<Figure> {
        let name = "a transaction left open";
        let (before, from) = self.begin().await;
        let forgotten = self.site.witness().forgotten_transaction().await;
        tokio::time::sleep(self.pace.seconds(LASTS)).await;
        let until = now();
        drop(forgotten);
        self.figures(name, before, from, until).await
    }

    async fn readers(&self) -> Vec<Figure> {
        let name = "four REPEATABLE READ readers";
        let (before, from) = self.begin().await;
        let readers = join_all((0..4).map(|_| self.site.witness().reader())).await;
        tokio::time::sleep(self.pace.seconds(LASTS)).await;
        let until = now();
        drop(readers);
        self.figures(name, before, from, until).await
    }

    /// Enqueues so many times what the fleet can do, tenth of a second by tenth of a second.
    async fn too_much(&self, name: &str, times: f64, seconds: u64) -> Vec<Figure> {
        let (before, from) = self.begin().await;
        let (began, lasts) = (Instant::now(), self.pace.seconds(LASTS));
        let offered = self.pace.seconds(seconds);
        let mut pushed = 0;
        while began.elapsed() < offered {
            let due = (began.elapsed().as_secs_f64() * self.clean * times) as usize;
            pushed += self.site.push(due.saturating_sub(pushed)).await.len();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(lasts.saturating_sub(began.elapsed())).await;
        self.figures(name, before, from, now()).await
    }

    /// Puts enough work before the fleet; the dead rows and the time before the pressure.
    async fn begin(&self) -> (BTreeMap<String, i64>, i64) {
        self.site.stock(self.clean * 1.5 * (LASTS + AFTER) as f64 + 100.0).await;
        (self.site.witness().dead_rows().await.into_iter().collect(), now())
    }

    async fn figures(&self, name: &str, before: BTreeMap<String, i64>, from: i64, until: i64) -> Vec<Figure> {
        tokio::time::sleep(self.pace.seconds(AFTER)).await;
        let (rates, after) = (self.site.rates(from).await, now());
        let meanwhile = Figure::of(name, "jobs/s", rates.seconds(from, until)).beside(self.clean);
        let afterwards = Figure::of(format!("{name}, afterwards"), "jobs/s", rates.seconds(until, after));
        let mut figures = vec![
            meanwhile.aiming("at least 70 % of clean", |figure| figure.share_of_clean >= Some(0.7)),
            afterwards
                .beside(self.clean)
                .aiming("100 % of clean, give or take 5", |figure| figure.share_of_clean >= Some(0.95)),
        ];
        let dead = self.site.witness().dead_rows().await;
        figures.extend(dead.into_iter().take(RELATIONS).map(|(relation, rows)| {
            let had = before.get(&relation).copied().unwrap_or_default();
            let name = format!("{name}, dead rows of {relation} afterwards");
            Figure::of(name, "rows", vec![rows as f64]).after(had as f64)
        }));
        figures
    }
}
