//! Redis, the database and the memory of a process apply limits alike.

use super::{Shared, per_minute};
use futures::future::join_all;
use std::sync::Arc;
use turnstone_domain::Timestamp;
use turnstone_domain::ids::SystemIds;
use turnstone_store::limits::{Admission, FleetwideLimits, Grant, Limit, LimitKey, LocalLimits, RateLimits};
use turnstone_store::redis::RedisLimits;
use turnstone_store::{SqliteStore, WorkerBeat, WorkerKind, WorkerState};
use turnstone_tests::servers::Redis;
use turnstone_tests::wait;

const NOW: Timestamp = Timestamp(1_767_225_600_000);

fn key(tenant: &str) -> LimitKey {
    LimitKey::new("provider", "model", tenant)
}

fn wait(ms: i64) -> Admission {
    Admission::Wait { until: NOW.plus_ms(ms), held: false }
}

fn held(ms: i64) -> Admission {
    Admission::Wait { until: NOW.plus_ms(ms), held: true }
}

fn grant(admission: Admission) -> Grant {
    let Admission::Granted(grant) = admission else { panic!("{admission:?}") };
    grant
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_redis), ignore = "needs PostgreSQL and Redis")]
async fn processes_share_one_bucket() {
    let limit = per_minute(60, None);
    for shared in Shared::every().await {
        let key = key("");
        let asks = (0..20).flat_map(|_| [&shared.one, &shared.other]).map(|p| p.admit(&key, &limit, 1, NOW));
        let answers = join_all(asks).await;
        let mut granted = answers.iter().filter(|a| matches!(a, Ok(Admission::Granted(_)))).count();
        // Concurrent requests may be refused although some of the limit is left.
        while let Admission::Granted(_) = shared.one.admit(&key, &limit, 1, NOW).await.unwrap() {
            granted += 1;
        }
        assert_eq!(granted, 10, "{}: a burst is a sixth of the limit", shared.name);
        assert_eq!(shared.other.admit(&key, &limit, 1, NOW).await.unwrap(), wait(1_000), "{}", shared.name);
        let later = NOW.plus_ms(1_000);
        grant(shared.other.admit(&key, &limit, 1, later).await.unwrap());
        assert_eq!(shared.one.admit(&key, &limit, 1, later).await.unwrap(), wait(2_000), "{}", shared.name);
    }
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_redis), ignore = "needs PostgreSQL and Redis")]
async fn a_returned_grant_is_available_to_another_process() {
    let limit = per_minute(None, 600);
    for shared in Shared::every().await {
        let granted = grant(shared.one.admit(&key("t"), &limit, 400, NOW).await.unwrap());
        assert_eq!(
            shared.other.admit(&key("t"), &limit, 100, NOW).await.unwrap(),
            wait(40_000),
            "{}",
            shared.name
        );
        grant(shared.other.admit(&key("another"), &limit, 400, NOW).await.unwrap());
        shared.one.settle(&key("t"), &limit, granted, 350, NOW).await.unwrap();
        assert_eq!(
            shared.other.admit(&key("t"), &limit, 100, NOW).await.unwrap(),
            wait(35_000),
            "{}",
            shared.name
        );
    }
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_redis), ignore = "needs PostgreSQL and Redis")]
async fn a_hold_counts_for_every_process_and_tenant() {
    let limit = Limit::default();
    for shared in Shared::every().await {
        grant(shared.one.admit(&key("a"), &limit, 1, NOW).await.unwrap());
        shared.one.hold(&key("a"), NOW.plus_ms(30_000), NOW).await.unwrap();
        shared.other.hold(&key("b"), NOW.plus_ms(5_000), NOW).await.unwrap();
        for tenant in ["a", "b", ""] {
            let admission = shared.other.admit(&key(tenant), &limit, 1, NOW.plus_ms(29_999)).await.unwrap();
            assert_eq!(admission, held(30_000), "{}: {tenant}", shared.name);
        }
        let other_model = LimitKey::new("provider", "another", "a");
        grant(shared.other.admit(&other_model, &limit, 1, NOW).await.unwrap());
        grant(shared.other.admit(&key("a"), &limit, 1, NOW.plus_ms(30_000)).await.unwrap());
    }
}

/// A deterministic sequence of pseudorandom numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn signed_below(&mut self, bound: u64) -> i64 {
        i64::try_from(self.below(bound)).unwrap()
    }
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_redis), ignore = "needs PostgreSQL and Redis")]
async fn every_keeper_decides_like_the_memory_of_one_process() {
    for shared in Shared::every().await {
        let mut dice = Dice(7);
        for round in 0..20 {
            let bounds = [None, Some(1 + dice.below(100)), Some(1 + dice.below(1_000_000_000))];
            let limit = per_minute(bounds[dice.below(3) as usize], bounds[dice.below(3) as usize]);
            let (key, local, mut now) = (key(&round.to_string()), LocalLimits::one_of(1), NOW);
            for step in 0..25 {
                let reported = format!("{}: round {round}, step {step}, {limit:?}", shared.name);
                // The clock of one process is sometimes behind.
                now = now.plus_ms(dice.signed_below(2_000) - 200);
                let tokens = dice.signed_below(500);
                let shared = [&shared.one, &shared.other][step % 2];
                let admission = shared.admit(&key, &limit, tokens, now).await.unwrap();
                assert_eq!(admission, local.admit(&key, &limit, tokens, now).await.unwrap(), "{reported}");
                let Admission::Granted(grant) = admission else { continue };
                let used = dice.signed_below(tokens.unsigned_abs() + 1);
                for keeper in [&**shared, &local] {
                    keeper.settle(&key, &limit, grant, used, now).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn a_flushed_redis_resets_the_limits_and_continues() {
    let redis = Redis::start().await;
    let limits = RedisLimits::new(&redis.url()).unwrap();
    let limit = per_minute(6, None);
    for _ in 0..2 {
        grant(limits.admit(&key(""), &limit, 1, NOW).await.unwrap());
        assert_eq!(limits.admit(&key(""), &limit, 1, NOW).await.unwrap(), wait(10_000));
        redis.flush().await;
        redis.command(&["SCRIPT", "FLUSH"]).await;
    }
}

async fn beat(store: &turnstone_store::Store, name: &str, seen_at: Timestamp) {
    let beat = WorkerBeat {
        name: name.to_owned(),
        instance: name.to_owned(),
        host: "here".to_owned(),
        pid: 1,
        version: "0".to_owned(),
        queues: vec!["*".to_owned()],
        slots: 1,
        busy: 0,
        state: WorkerState::Running,
        started_at: seen_at,
        seen_at,
        kind: WorkerKind::Own,
        directive: None,
    };
    store.ledger.beat(beat, 15_000).await.unwrap();
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn without_redis_a_process_keeps_to_its_share_until_redis_returns() {
    let folder = turnstone_tests::scratch::folder();
    let store = SqliteStore::open(&folder.path().join("t.db"), Arc::new(SystemIds)).await.unwrap();
    for name in ["one", "two", "three"] {
        beat(&store, name, NOW).await;
    }
    beat(&store, "dead", NOW.plus_ms(-60_000)).await;
    let redis = Redis::start().await;
    let in_redis = || Arc::new(RedisLimits::new(&redis.url()).unwrap());
    let limits = FleetwideLimits::new("Redis", in_redis(), store.views.clone());
    let limit = per_minute(60, None);
    grant(limits.admit(&key(""), &limit, 1, NOW).await.unwrap());

    redis.kill().await;
    for _ in 0..3 {
        grant(limits.admit(&key(""), &limit, 1, NOW).await.unwrap());
    }
    let share = "a third of ten at once, and then one every three seconds";
    assert_eq!(limits.admit(&key(""), &limit, 1, NOW).await.unwrap(), wait(2_000), "{share}");
    limits.hold(&key("held"), NOW.plus_ms(9_000), NOW).await.unwrap();
    assert_eq!(limits.admit(&key(""), &limit, 1, NOW).await.unwrap(), held(9_000));

    redis.start_again().await;
    let elsewhere = in_redis();
    elsewhere.hold(&key(""), NOW.plus_ms(20_000), NOW).await.unwrap();
    let back = async || limits.admit(&key(""), &limit, 1, NOW).await.unwrap() == held(20_000);
    wait::until("Redis is used again", back).await;
}
