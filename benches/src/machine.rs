//! The machine of a measurement.

use serde::Serialize;

/// The machine and the program, as far as they bear on the figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Machine {
    /// This program's version.
    pub turnstone: &'static str,
    /// `release` or `debug`; figures of a debug build do not apply to the product.
    pub profile: &'static str,
    /// Processors this program may use.
    pub cores: usize,
    /// The processor's own name, where the system reports it.
    pub cpu: Option<String>,
    /// Operating system, processor architecture and kernel.
    pub system: String,
    /// The load of the minute before, where the system reports it.
    pub load_before: Option<f64>,
}

impl Machine {
    /// This machine, now.
    #[must_use]
    pub fn look() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let kernel = read("/proc/sys/kernel/osrelease");
        let system = format!("{} {} {}", std::env::consts::OS, std::env::consts::ARCH, kernel.trim());
        Self {
            turnstone: env!("CARGO_PKG_VERSION"),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" },
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: model_name(&read("/proc/cpuinfo")),
            system: system.trim_end().to_owned(),
            load_before: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()),
        }
    }
}

fn model_name(cpuinfo: &str) -> Option<String> {
    let (_, name) = cpuinfo.lines().find(|line| line.starts_with("model name"))?.split_once(':')?;
    Some(name.trim().to_owned())
}

/// Returns the kilobytes of memory that this program occupies; `None` where the system does not report it.
#[must_use]
pub fn resident_kb() -> Option<u64> {
    rss(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Returns the milliseconds of processor time that this program has taken, over all threads; `None` where the system
/// does not report it. It moves in steps of 10 ms.
#[must_use]
pub fn processor_ms() -> Option<f64> {
    ticks(&std::fs::read_to_string("/proc/self/stat").ok()?).map(|ticks| ticks as f64 * 10.0)
}

/// Returns the same of all processes of this name on this machine, with that of their children that have ended; `None`
/// when there is no such process.
#[must_use]
pub fn processor_ms_of(name: &str) -> Option<f64> {
    let processes = std::fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    let taken: Vec<u64> =
        stats.filter(|stat| is_named(stat, name)).filter_map(|stat| ticks_of_all(&stat)).collect();
    (!taken.is_empty()).then(|| taken.iter().sum::<u64>() as f64 * 10.0)
}

fn is_named(stat: &str, name: &str) -> bool {
    stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).is_some_and(|(found, _)| found == name)
}

/// User and system time in hundredths of a second, which is what Linux counts in for every program.
fn ticks(stat: &str) -> Option<u64> {
    sum(stat, 2)
}

/// Returns the same with the time of children that have ended.
fn ticks_of_all(stat: &str) -> Option<u64> {
    sum(stat, 4)
}

fn sum(stat: &str, times: usize) -> Option<u64> {
    // The program's name is in parentheses and may contain anything.
    let fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11).take(times);
    fields.map(|field| field.parse::<u64>().ok()).sum()
}

fn rss(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_read_as_linux_writes_it() {
        assert_eq!(rss("Name:\tx\nVmRSS:\t   12345 kB\nRssAnon:\t 1 kB\n"), Some(12345));
        assert_eq!(rss("Name:\tx\n"), None);
        assert_eq!(ticks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 120 30 0 0"), Some(150));
        assert_eq!(ticks_of_all("7 (postgres) S 1 2 3 4 5 6 7 8 9 10 120 30 7 5 20 0"), Some(162));
        assert!(is_named("7 (postgres) S 1", "postgres") && !is_named("7 (postgresql) S 1", "postgres"));
        assert_eq!(model_name("processor\t: 0\nmodel name\t: A CPU\n").as_deref(), Some("A CPU"));
        assert_eq!(model_name(""), None);
    }
}
