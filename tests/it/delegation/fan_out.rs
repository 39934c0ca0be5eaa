//! Many children over several processes that are killed at random: the budget of the root is never overspent, nothing is
//! lost, nothing is done twice. `TURNSTONE_FAN_OUT=100` and `TURNSTONE_FAN_OUT_WORKERS=8` make it larger.
//!
//! The leases of the dead run out in real time, and only theirs: whoever ends the leases of the living too, after each
//! death, makes the fleet believe that a job kills its workers.

use super::{answers, ask, calls, engagement, may_ask, oas, ossa, register, said, who};
use crate::crash::spawn_with_lease;
use crate::random::Random;
use futures::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::process::Child;
use turnstone_tests::wait::until;
use turnstone_tests::{Backend, Fleet, Reply};

/// Children of one parent, at most: a model that asks for more calls in one answer is told so.
const GROUP: usize = 10;
/// How long a dead worker holds its jobs.
const LEASE_MS: u64 = 3_000;
const ENDED: &str = "SELECT count(*) FROM jobs WHERE state IN ('completed', 'discarded', 'cancelled') AND seq = (SELECT min(seq) FROM jobs)";

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fan_out_under_kills_never_overspends() {
    let children = number("TURNSTONE_FAN_OUT", 24);
    let workers = number("TURNSTONE_FAN_OUT_WORKERS", 3);
    join_all(Backend::ALL.map(|backend| survive(backend, children, workers))).await;
}

/// The boss asks leads, each lead asks scouts: so many that there are `children` of them.
fn script(children: usize) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| match (who(request), answers(request)) {
        ("boss", told) if told.is_empty() => {
            let groups: Vec<String> = (0..children.div_ceil(GROUP)).map(|group| group.to_string()).collect();
            calls(&groups.iter().map(|group| ("lead", group.as_str())).collect::<Vec<_>>())
        }
        ("lead", told) if told.is_empty() => {
            let group: usize = said(request).parse().unwrap();
            let own: Vec<String> =
                (group * GROUP..children.min((group + 1) * GROUP)).map(|scout| scout.to_string()).collect();
            calls(&own.iter().map(|scout| ("scout", scout.as_str())).collect::<Vec<_>>())
        }
        ("scout", _) => Reply::text(format!("<{}>", said(request))),
        (_, told) => Reply::text(told.concat()),
    }
}

fn start(fleet: &Fleet) -> Child {
    spawn_with_lease(fleet, 2, LEASE_MS, None)
}

async fn survive(backend: Backend, children: usize, workers: usize) {
    let fleet = Fleet::builder().on(backend).in_real_time().workers(0).model(script(children)).start().await;
    let asks = |who: &str| may_ask(who, "type: parallel, on_failure: retry");
    let team = [oas("scout", &[]), ossa("lead", &asks("scout")), ossa("boss", &asks("lead"))];
    register(&fleet, &team).await;
    let leads = children.div_ceil(GROUP);
    let needed = i64::try_from((1 + leads) * (19 + 15) + children * 15).unwrap();
    // What calls in flight may reserve has to fit in, too: every worker has two slots, and so has a dead one for a while.
    let limit = needed + i64::try_from(workers * 2 * 2 * 6_000).unwrap();
    let id = ask(&fleet, "boss", &json!({"ext_agent_token_budget": limit})).await;
    let time = fleet.keep_time();
    let mut random = Random::new(0xfa_0007);
    let mut fleet_of = (0..workers).map(|_| start(&fleet)).collect::<Vec<_>>();
    for _ in 0..children / 3 {
        let more = fleet.models.count() + random.below(6) + 1;
        until("the fleet goes on", async || {
            let asked = tokio::time::timeout(Duration::from_millis(250), fleet.models.seen(more)).await;
            asked.is_ok() || fleet.number(ENDED).await > 0
        })
        .await;
        let victim = random.below(workers);
        fleet_of[victim].kill().await.expect("SIGKILL");
        assert_within(&fleet, limit).await;
        fleet_of[victim] = start(&fleet);
    }
    until("the fan-out ends", async || fleet.number(ENDED).await > 0).await;
    let done = fleet.job(&id).await;
    assert_eq!(done["state"], "completed", "on {backend:?}: {done:#}");
    drop(time);
    drop(fleet_of);
    let result = done["result"].as_str().unwrap();
    for scout in 0..children {
        assert_eq!(
            result.matches(&format!("<{scout}>")).count(),
            1,
            "scout {scout} on {backend:?}: {result}"
        );
    }
    let seen = engagement(&fleet, &id).await;
    assert_eq!(
        seen["children"].as_array().unwrap().len(),
        leads + children,
        "on {backend:?}: nobody was asked twice; what failed: {:?}",
        failures(&fleet).await
    );
    assert_eq!(seen["tokens"]["used"], needed, "on {backend:?}: each answer was booked once");
    assert_eq!(seen["tokens"]["reserved"], 0, "on {backend:?}");
    assert_eq!(seen["tree"]["tokens_used"], needed, "on {backend:?}");
    let open = fleet.number("SELECT count(*) FROM delegations WHERE state = 'open'").await;
    assert_eq!(open, 0, "on {backend:?}");
    fleet.place.check().await;
}

/// Which failures there were, and how often: a child that failed is asked anew.
async fn failures(fleet: &Fleet) -> Vec<(String, i64)> {
    fleet.place.rows("SELECT error, count(*) FROM job_errors GROUP BY error ORDER BY error").await
}

async fn assert_within(fleet: &Fleet, limit: i64) {
    let spent = fleet.number("SELECT CAST(max(settled + reserved) AS BIGINT) FROM budgets").await;
    assert!(spent <= limit, "{spent} of {limit}");
}
