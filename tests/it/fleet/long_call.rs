//! A model call of ten minutes, in no time: the clocks of the fleet and of the workers' timers are moved together.

use crate::paused_timers::PausedTimers;
use std::time::Duration;
use turnstone_domain::JobState;
use turnstone_tests::{Fleet, Gate, Reply, wait};

/// The call outlasts four leases, and each step is longer than half of one.
const LEASE_MS: i64 = 150_000;
const STEP_MS: i64 = 100_000;
const CALL_MS: i64 = 600_000;

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_model_call_of_ten_minutes_is_never_started_twice() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = move |_: &serde_json::Value| Reply::text("done").behind(&held);
    let mut fleet = Fleet::builder().postgres().workers(0).model(model).start().await;
    for _ in 0..2 {
        fleet.add_worker_with(4, |mut deps| {
            deps.options.lease = Duration::from_millis(LEASE_MS.unsigned_abs());
            deps.options.model_timeout = Duration::from_secs(3_600);
            deps
        });
    }
    let job = serde_json::json!({"type": "agent.x", "args": ["think long"], "ext_agent_model": "m"});
    let id = fleet.push(&job).await;
    fleet.models.seen(1).await;

    let timers = PausedTimers::begin();
    let mut beats = 0;
    for _ in 0..CALL_MS / STEP_MS {
        fleet.clock.advance_ms(STEP_MS);
        timers.advance(Duration::from_millis(STEP_MS.unsigned_abs())).await;
        // The worker extends its lease when its timer fires.
        let wanted = fleet.now().0 + LEASE_MS;
        let extended =
            format!("SELECT count(*) FROM jobs WHERE state = 'active' AND lease_expires_at = {wanted}");
        let what = format!("the lease is extended after {beats} times");
        wait::until(&what, async || fleet.number(&extended).await > 0).await;
        beats += 1;
        fleet.tick().await;
    }
    timers.end().await;
    gate.open();
    let done = fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!((done["attempt"].as_i64(), beats), (Some(1), CALL_MS / STEP_MS), "{done:#}");
    assert_eq!(fleet.models.count(), 1, "the call was started twice");
    fleet.end().await;
}
