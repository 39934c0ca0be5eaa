//! The speed of the disk alone: appending 4 KiB and waiting for `fdatasync`, in the directory that is measured.

use serde::Serialize;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Clock, Ids as _};
use turnstone_store::{Ledger, StoreError, WorkerBeat, WorkerKind, WorkerState};

/// Bytes that are appended before each wait: a page of the database.
const PAGE: usize = 4096;
/// How long the disk is watched.
const WATCHED: Duration = Duration::from_millis(500);

/// The measured speed of the disk.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Disk {
    /// Appends of 4 KiB with `fdatasync` in a second, one after another.
    pub fdatasync_per_s: f64,
    /// The median of one, in milliseconds.
    pub p50_ms: f64,
    /// The 95th percentile, in milliseconds.
    pub p95_ms: f64,
    /// The 99th percentile, in milliseconds.
    pub p99_ms: f64,
    /// Commits of one small row in a second, one after another, through the store: its own floor.
    pub single_commits_per_s: f64,
}

/// Commits one small row after another for about half a second, and returns how many went into a second.
///
/// # Errors
/// The store failed.
pub async fn single_commits(ledger: &dyn Ledger, clock: &dyn Clock) -> Result<f64, StoreError> {
    let beat = WorkerBeat {
        name: "turnstone-bench".to_owned(),
        instance: SystemIds.next(),
        host: "bench".to_owned(),
        pid: 0,
        version: String::new(),
        queues: Vec::new(),
        slots: 0,
        busy: 0,
        state: WorkerState::Draining,
        started_at: clock.now(),
        seen_at: clock.now(),
        kind: WorkerKind::Own,
        directive: None,
    };
    let (began, mut commits) = (Instant::now(), 0_u32);
    while began.elapsed() < WATCHED {
        ledger.beat(beat.clone(), 0).await?;
        commits += 1;
    }
    let took = began.elapsed();
    ledger.leave(&beat.name, &beat.instance).await?;
    Ok(f64::from(commits) / took.as_secs_f64())
}

/// Watches the disk for about half a second.
///
/// # Errors
/// The directory cannot be written.
pub async fn watch(dir: &Path) -> io::Result<Disk> {
    let dir = dir.to_owned();
    tokio::task::spawn_blocking(move || append(&dir)).await.map_err(io::Error::other)?
}

fn append(dir: &Path) -> io::Result<Disk> {
    let (began, mut waits) = (Instant::now(), Vec::new());
    let mut file: File = tempfile::tempfile_in(dir)?;
    while began.elapsed() < WATCHED {
        let requested = Instant::now();
        file.write_all(&[7; PAGE])?;
        file.sync_data()?;
        waits.push(requested.elapsed().as_secs_f64() * 1e3);
    }
    let total: f64 = waits.iter().sum();
    waits.sort_by(f64::total_cmp);
    Ok(Disk {
        fdatasync_per_s: waits.len() as f64 * 1e3 / total,
        p50_ms: percentile(&waits, 50),
        p95_ms: percentile(&waits, 95),
        p99_ms: percentile(&waits, 99),
        single_commits_per_s: 0.0,
    })
}

/// Returns the value that `percent` of the sorted values do not exceed; 0 of nothing.
#[must_use]
pub fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(
            (percentile(&values, 50), percentile(&values, 95), percentile(&values, 99)),
            (100.0, 190.0, 198.0)
        );
        assert_eq!((percentile(&[3.0], 99), percentile(&[], 50)), (3.0, 0.0));
    }
}
