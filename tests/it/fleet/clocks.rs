//! Machines whose clocks are five minutes off, beside one that is right.

use super::Site;
use crate::program::{Env, Program};
use turnstone_domain::{Clock as _, SystemClock};
use turnstone_tests::servers::faketime_path;
use turnstone_tests::{Gate, Reply};

/// What makes the clock of a process wrong.
fn off_by<'a>(library: &'a str, by: &'a str) -> [(&'a str, &'a str); 3] {
    [("LD_PRELOAD", library), ("FAKETIME", by), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]
}

/// How far off a process is that is told so.
fn told(env: Env<'_>) -> i64 {
    let date = std::process::Command::new("date").arg("+%s").envs(env.iter().copied()).output().unwrap();
    let told: i64 = String::from_utf8(date.stdout).unwrap().trim().parse().unwrap();
    told - SystemClock.now().0 / 1_000
}

fn has_loaded(program: &Program, library: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/maps", program.pid())).unwrap().contains(library)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(any(no_postgres, no_faketime), ignore = "needs PostgreSQL and libfaketime")]
async fn a_worker_with_a_wrong_clock_neither_steals_a_lease_nor_loses_its_own() {
    let gate = Gate::default();
    let held = gate.clone();
    let site = Site::start(move |_| Reply::text("done").behind(&held)).await;
    let path = tokio::task::spawn_blocking(faketime_path).await.unwrap();
    let library = path.to_str().unwrap();
    let (ahead, behind) = (off_by(library, "+5m"), off_by(library, "-5m"));
    assert!((290..310).contains(&told(&ahead)) && (-310..-290).contains(&told(&behind)), "clocks are right");

    // Three that hold a lease each, and as they are full, two that could only take what is held already.
    let mut jobs = Vec::new();
    let mut programs = Vec::new();
    let clocks: [(&str, Env<'_>); 3] = [("ahead", &ahead), ("behind", &behind), ("right", &[])];
    for (name, env) in clocks {
        jobs.push(site.push(name).await);
        programs.push(site.worker(name, &["--slots", "1", "--lease", "6s"], env).await);
    }
    site.fleet.models.seen(3).await;
    for (name, env) in [("thief-ahead", &ahead), ("thief-behind", &behind)] {
        let thief = site.worker(name, &["--lease", "6s"], env).await;
        assert!(has_loaded(&thief, library), "the clock of {name} is right");
        programs.push(thief);
    }
    for env in [&ahead, &behind] {
        let mut scheduler = site.program(&["scheduler"], env);
        scheduler.first_line("turnstone scheduler ").await;
        programs.push(scheduler);
    }

    // Every lease has been extended beyond its second end.
    let extended =
        "SELECT count(*) FROM jobs WHERE state = 'active' AND lease_expires_at >= claimed_at + 13000";
    site.fleet.until("three leases last", async || site.fleet.number(extended).await == 3).await;
    gate.open();
    for (id, name) in jobs.iter().zip(["ahead", "behind", "right"]) {
        let done = site.fleet.settled(id).await;
        assert_eq!(site.last_worker(id).await, name);
        assert_eq!(done["state"], "completed", "{done:#}");
        assert_eq!(done["attempt"], 1, "the lease of {name} was lost: {done:#}");
        let expired = site.fleet.event_names(id).await.iter().any(|event| event == "lease.expired");
        assert!(!expired, "the lease of {name} ran out");
    }
    assert_eq!(site.fleet.models.count(), 3, "somebody took what others held");
    let off = "SELECT count(*) FROM events WHERE abs(at - (SELECT max(at) FROM events WHERE name = 'job.enqueued')) > 120000";
    assert_eq!(site.fleet.number(off).await, 0, "something was written with the time of a wrong clock");
    for program in programs {
        program.stop().await;
    }
    site.fleet.end().await;
}
