//! Redis carries notifications between processes, and is optional.

use tokio::sync::broadcast::Receiver;
use turnstone_domain::ids::SystemIds;
use turnstone_store::redis::{RedisRelay, check, demand};
use turnstone_store::{Doorbell, Ring};
use turnstone_tests::servers::Redis;
use turnstone_tests::wait;

/// Returns the doorbell of a process, and its notifications from the connection on.
async fn connected(url: &str) -> (Doorbell, Receiver<Ring>) {
    let bell = Doorbell::default();
    let mut heard = bell.listen();
    RedisRelay::start(url, &bell, &SystemIds).unwrap();
    looks_again(&mut heard).await;
    (bell, heard)
}

/// A new connection looks once for missed notifications.
async fn looks_again(heard: &mut Receiver<Ring>) {
    assert_eq!([next(heard).await, next(heard).await], [Ring::Available, Ring::Due]);
}

async fn next(heard: &mut Receiver<Ring>) -> Ring {
    wait::output("a notification", heard.recv()).await.unwrap()
}

fn events(stream: &str) -> Ring {
    Ring::Events(stream.to_owned())
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn a_notification_reaches_every_other_process_once() {
    let redis = Redis::start().await;
    let (one, mut at_one) = connected(&redis.url()).await;
    let (other, mut at_other) = connected(&redis.url()).await;
    for ring in [events("a"), Ring::Revoked("token".to_owned()), Ring::Available] {
        one.ring(ring.clone());
        assert_eq!(next(&mut at_other).await, ring);
        assert_eq!(next(&mut at_one).await, ring);
    }
    other.ring(events("from the other"));
    // Its own notifications, if they came back, would precede this one.
    assert_eq!(next(&mut at_one).await, events("from the other"));
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn a_relay_that_lags_drops_no_revocation() {
    let redis = Redis::start().await;
    let (one, _) = connected(&redis.url()).await;
    let (other, _) = connected(&redis.url()).await;
    let mut heard = other.listen_for_work();
    let revoked = Ring::Revoked("before thousands of events".to_owned());
    one.ring(revoked.clone());
    // More than a relay keeps, without a moment in which it could send.
    for number in 0..10_000 {
        one.ring(events(&number.to_string()));
    }
    while next(&mut heard).await != revoked {}
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn a_restarted_redis_is_reconnected() {
    let redis = Redis::start().await;
    let (one, mut at_one) = connected(&redis.url()).await;
    let (_other, mut at_other) = connected(&redis.url()).await;
    for _ in 0..2 {
        redis.kill().await;
        one.ring(events("while it is dead"));
        assert_eq!(next(&mut at_one).await, events("while it is dead"), "this process notifies itself");
        redis.start_again().await;
        looks_again(&mut at_one).await;
        looks_again(&mut at_other).await;
        one.ring(events("alive"));
        assert_eq!(next(&mut at_other).await, events("alive"), "old notifications are dropped");
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
