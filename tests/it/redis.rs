//! Redis carries rings between processes, and is never missed.

use tokio::sync::broadcast::Receiver;
use turnstone_domain::ids::SystemIds;
use turnstone_store::redis::{RedisRelay, check, demand};
use turnstone_store::{Doorbell, Ring};
use turnstone_tests::servers::Redis;
use turnstone_tests::wait;

/// A process's bell, and what is heard of it once it is connected.
async fn connected(url: &str) -> (Doorbell, Receiver<Ring>) {
    let bell = Doorbell::default();
    let mut heard = bell.listen();
    RedisRelay::start(url, &bell, &SystemIds).unwrap();
    looks_again(&mut heard).await;
    (bell, heard)
}

/// Whoever connects looks once for what it may have missed.
async fn looks_again(heard: &mut Receiver<Ring>) {
    assert_eq!([next(heard).await, next(heard).await], [Ring::Available, Ring::Due]);
}

async fn next(heard: &mut Receiver<Ring>) -> Ring {
    wait::output("a ring", heard.recv()).await.unwrap()
}

fn events(stream: &str) -> Ring {
    Ring::Events(stream.to_owned())
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn a_ring_reaches_every_other_process_once() {
    let redis = Redis::start().await;
    let (one, mut at_one) = connected(&redis.url()).await;
    let (other, mut at_other) = connected(&redis.url()).await;
    for ring in [events("a"), Ring::Revoked("token".to_owned()), Ring::Available] {
        one.ring(ring.clone());
        assert_eq!(next(&mut at_other).await, ring);
        assert_eq!(next(&mut at_one).await, ring);
    }
    other.ring(events("from the other"));
    // Had its own rings come back to it, they would stand before this one.
    assert_eq!(next(&mut at_one).await, events("from the other"));
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn a_redis_that_dies_is_found_again() {
    let redis = Redis::start().await;
    let (one, mut at_one) = connected(&redis.url()).await;
    let (_other, mut at_other) = connected(&redis.url()).await;
    for _ in 0..2 {
        redis.kill().await;
        one.ring(events("while it is dead"));
        assert_eq!(next(&mut at_one).await, events("while it is dead"), "this process hears itself");
        redis.start_again().await;
        looks_again(&mut at_one).await;
        looks_again(&mut at_other).await;
        one.ring(events("alive"));
        assert_eq!(next(&mut at_other).await, events("alive"), "what is old by now is not carried");
        assert_eq!(next(&mut at_one).await, events("alive"));
    }
    redis.flush().await;
    one.ring(events("flushed"));
    assert_eq!(next(&mut at_other).await, events("flushed"));
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn a_relay_starts_before_its_redis() {
    let redis = Redis::start().await;
    redis.stop().await;
    let bell = Doorbell::default();
    let mut heard = bell.listen();
    RedisRelay::start(&redis.url(), &bell, &SystemIds).unwrap();
    bell.ring(events("alone"));
    assert_eq!(next(&mut heard).await, events("alone"));
    redis.start_again().await;
    looks_again(&mut heard).await;
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn an_evicting_redis_is_refused() {
    let redis = Redis::start_with(&[("maxmemory", "64mb"), ("maxmemory-policy", "volatile-lru")]).await;
    let refused = demand(&redis.url()).await.unwrap_err().to_string();
    assert!(refused.contains("volatile-lru") && refused.contains("noeviction"), "{refused}");
    redis.config("maxmemory-policy", "noeviction").await;
    demand(&redis.url()).await.unwrap();
    assert!(check(&redis.url()).await.iter().all(|finding| finding.ok));
    redis.stop().await;
    assert!(check(&redis.url()).await[0].what.contains("Redis cannot be asked"));
    demand(&redis.url()).await.expect("a Redis that is away is no reason to stay away");
}
