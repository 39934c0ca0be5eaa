//! Many children over several processes that are killed at random: the budget of the root is never overspent, no work
//! is lost, and none is done twice.
//!
//! Only the leases of killed workers expire, in real time. Expiring the leases of living workers too would count as
//! jobs that kill their workers.

use super::{answers, ask, calls, engagement, may_ask, oas, ossa, who};
use crate::crash::spawn_with_lease;
use crate::random::Random;
use futures::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;
use turnstone_tests::model_server::Gate;
use turnstone_tests::model_server::newest;
use turnstone_tests::processes::Process;
use turnstone_tests::wait::until_within;
use turnstone_tests::{Backend, Fleet, Reply};

/// The most children of one parent: a model that calls more agents in one answer gets an error.
const GROUP: usize = 10;
/// The lease of a worker, in milliseconds.
const LEASE_MS: u64 = 3_000;
/// The deadline of a fan-out. It is long, because many processes share few cores.
const PATIENCE: Duration = Duration::from_secs(300);
const ENDED: &str = "SELECT count(*) FROM jobs WHERE state IN ('completed', 'discarded', 'cancelled') AND seq = (SELECT min(seq) FROM jobs)";
/// The number of calls that a budget refused.
const REFUSED: &str = "SELECT count(*) FROM journal WHERE names LIKE '%budget.exceeded%'";
/// Prompt and completion tokens of a scout's answer: below the smallest reservation, or as many as an answer may
/// have, which is at most what the request allows.
const CHEAP: (i64, i64) = (10, 5);
const DEAR: (i64, i64) = (40, 400);
/// More tokens than any one call may use, beside those of the calls before it.
const ROOM: i64 = 2_600;

/// The number of the boss's delegates and of the processes.
#[derive(Clone, Copy)]
struct Size {
    children: usize,
    workers: usize,
    kills: usize,
    scout: (i64, i64),
}

impl Size {
    fn leads(self) -> usize {
        self.children.div_ceil(GROUP)
    }

    /// Returns the most that the boss and the leads use above their reservations: they do not heed a cap of their answers.
    fn most_above_reservations(self) -> i64 {
        i64::try_from(1 + self.leads()).unwrap() * (7 + 5)
    }

    /// Returns the tokens that all agents use when no call is repeated.
    fn needed(self) -> i64 {
        let asking = i64::try_from((1 + self.leads()) * (19 + 15)).unwrap();
        asking + i64::try_from(self.children).unwrap() * (self.scout.0 + self.scout.1)
    }
}

/// The size of the default run, and of the long one.
const FEW: Size = Size { children: 12, workers: 3, kills: 2, scout: CHEAP };
const MANY: Size = Size { children: 60, workers: 4, kills: 12, scout: CHEAP };

/// The boss calls leads, and each lead calls scouts until there are `children` of them. Scouts answer when the gate
/// is open.
fn script(size: Size, gate: Gate) -> impl Fn(&Value) -> Reply + Send + Sync {
    let children = size.children;
    move |request| match (who(request), answers(request)) {
        ("boss", received) if received.is_empty() => {
            let groups: Vec<String> = (0..children.div_ceil(GROUP)).map(|group| group.to_string()).collect();
            calls(&groups.iter().map(|group| ("lead", group.as_str())).collect::<Vec<_>>())
        }
        ("lead", received) if received.is_empty() => {
            let group: usize = newest(request).parse().unwrap();
            let own: Vec<String> =
                (group * GROUP..children.min((group + 1) * GROUP)).map(|scout| scout.to_string()).collect();
            calls(&own.iter().map(|scout| ("scout", scout.as_str())).collect::<Vec<_>>())
        }
        ("scout", _) => {
            let (asked, written) = size.scout;
            let most = request["max_tokens"].as_i64().unwrap();
            let written = if size.scout == DEAR { written.min(most) } else { written };
            Reply::Text(format!("<{}>", newest(request)), (asked, written)).behind(&gate)
        }
        (_, received) => Reply::text(received.concat()),
    }
}

fn start(fleet: &Fleet) -> Process {
    spawn_with_lease(fleet, 2, LEASE_MS, None)
}

/// A fan-out that has ended.
struct Ended {
    fleet: Fleet,
    id: String,
    job: Value,
    /// The number of calls that the budget refused.
    refused: i64,
}

/// Runs a fan-out with this limit to its end while workers are killed, and checks the budget all the time. With
/// `contended` no scout is answered before the budget has refused a call.
async fn under_kills(backend: Backend, size: Size, limit: i64, more: &Value, contended: bool) -> Ended {
    let gate = Gate::default();
    let script = script(size, gate.clone());
    let fleet = Fleet::builder().on(backend).in_real_time().workers(0).model(script).start().await;
    let asks = |who: &str| may_ask(who, "type: parallel, on_failure: retry");
    let team = [oas("scout", &[]), ossa("lead", &asks("scout")), ossa("boss", &asks("lead"))];
    fleet.register_all(&team).await;
    let mut more = more.clone();
    more["ext_agent_token_budget"] = limit.into();
    let id = ask(&fleet, "boss", &more).await;
    let time = fleet.keep_time();
    let mut random = Random::new(0xfa_0007);
    let mut fleet_of = (0..size.workers).map(|_| start(&fleet)).collect::<Vec<_>>();
    let most = limit + size.most_above_reservations();
    let within = async |holds: bool| {
        assert_within(&fleet, most).await;
        holds
    };
    if contended {
        until_within("the budget refuses a call", PATIENCE, async || {
            within(fleet.number(REFUSED).await > 0).await
        })
        .await;
    }
    gate.open();
    for _ in 0..size.kills {
        let more = fleet.models.count() + random.below(6) + 1;
        until_within("the fleet continues", PATIENCE, async || {
            within(fleet.models.count() >= more || fleet.number(ENDED).await > 0).await
        })
        .await;
        let victim = random.below(size.workers);
        fleet_of[victim].kill().await.expect("SIGKILL");
        assert_within(&fleet, most).await;
        fleet_of[victim] = start(&fleet);
    }
    until_within("the fan-out ends", PATIENCE, async || within(fleet.number(ENDED).await > 0).await).await;
    until_within("every job ends", PATIENCE, async || {
        let open = "SELECT count(*) FROM jobs WHERE state NOT IN ('completed', 'discarded', 'cancelled')";
        within(fleet.number(open).await == 0).await
    })
    .await;
    let (job, refused) = (fleet.job(&id).await, fleet.number(REFUSED).await);
    drop((time, fleet_of));
    Ended { fleet, id, job, refused }
}

async fn assert_within(fleet: &Fleet, limit: i64) {
    let spent = fleet.number("SELECT CAST(coalesce(max(settled + reserved), 0) AS BIGINT) FROM totals").await;
    assert!(spent <= limit, "{spent} of {limit}");
    let booked =
        fleet.number("SELECT CAST(coalesce(sum(tokens_in + tokens_out), 0) AS BIGINT) FROM journal").await;
    assert!(booked <= limit, "checkpoints say {booked} of {limit}");
}

/// Asserts that each agent was called once, answered once, and was charged once.
async fn completed(backend: Backend, size: Size, ended: Ended) {
    let (fleet, job) = (&ended.fleet, &ended.job);
    assert_eq!(job["state"], "completed", "on {backend:?}: {job:#}");
    let result = job["result"].as_str().unwrap();
    for scout in 0..size.children {
        let received = result.matches(&format!("<{scout}>")).count();
        assert_eq!(received, 1, "scout {scout} on {backend:?}: {result}");
    }
    let seen = engagement(fleet, &ended.id).await;
    assert_eq!(
        seen["children"].as_array().unwrap().len(),
        size.leads() + size.children,
        "on {backend:?}: no agent was called twice; what failed: {:?}",
        failures(fleet).await
    );
    assert_eq!(seen["tokens"]["used"], size.needed(), "on {backend:?}: each answer was booked once");
    assert_eq!(seen["tokens"]["reserved"], 0, "on {backend:?}");
    assert_eq!(seen["tree"]["tokens_used"], size.needed(), "on {backend:?}");
    let open = fleet.number("SELECT count(*) FROM delegations WHERE state = 'open'").await;
    assert_eq!(open, 0, "on {backend:?}");
    ended.fleet.end().await;
}

/// Returns the failures and their numbers: a failed child is called again.
async fn failures(fleet: &Fleet) -> Vec<(String, i64)> {
    fleet.place.rows("SELECT error, count(*) FROM job_errors GROUP BY error ORDER BY error").await
}

/// There is room for all calls at once.
async fn wide(backend: Backend) {
    let (children, workers) = (12, 3);
    let size = Size { children, workers, kills: 3, scout: CHEAP };
    // The reservations of running calls have to fit, too. Every worker has two slots, and for a while a dead one has,
    // too.
    let limit = size.needed() + i64::try_from(workers * 2 * 2 * 6_000).unwrap();
    let ended = under_kills(backend, size, limit, &json!({}), false).await;
    completed(backend, size, ended).await;
}

/// There is room for one call more than all agents use: calls wait for the reservations of others.
async fn tight(backend: Backend, size: Size) {
    let retry = json!({"retry": {"max_attempts": 3, "initial_interval": "PT0.1S", "jitter": false}});
    let limit = size.needed() + ROOM;
    let ended = under_kills(backend, size, limit, &json!({"options": retry}), true).await;
    assert!(ended.refused > 0, "on {backend:?}: no call waited for another one");
    completed(backend, size, ended).await;
}

/// There is less than the agents need: no further call fits into the rest.
async fn too_little(backend: Backend, size: Size) {
    let size = Size { scout: DEAR, ..size };
    let retry = json!({"retry": {"max_attempts": 2, "initial_interval": "PT0.1S", "jitter": false}});
    let limit = ROOM;
    let ended = under_kills(backend, size, limit, &json!({"options": retry}), true).await;
    let job = &ended.job;
    assert_eq!(job["state"], "discarded", "on {backend:?}: {job:#}");
    assert_eq!(job["error"]["code"], "AGENT_TOKEN_BUDGET_EXCEEDED", "on {backend:?}: {job:#}");
    let seen = engagement(&ended.fleet, &ended.id).await;
    let used = seen["tokens"]["used"].as_i64().unwrap();
    let most = limit + size.most_above_reservations();
    assert!(used > 0 && used <= most, "on {backend:?}: {used} of {limit}");
    assert_eq!(seen["tokens"]["reserved"], 0, "on {backend:?}");
    assert_eq!(seen["tree"]["tokens_used"], used, "on {backend:?}");
    ended.fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fan_out_under_kills_never_overspends() {
    join_all(Backend::ALL.map(wide)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_for_one_another_where_the_budget_is_tight() {
    join_all(Backend::ALL.map(|backend| tight(backend, FEW))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fan_out_that_needs_more_than_its_budget_ends_within_it() {
    join_all(Backend::ALL.map(|backend| too_little(backend, FEW))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: sixty agents under twelve kills"]
async fn many_calls_wait_for_one_another_where_the_budget_is_tight() {
    for backend in Backend::ALL {
        tight(backend, MANY).await;
        too_little(backend, MANY).await;
    }
}
