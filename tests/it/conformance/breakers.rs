//! Circuit breakers are decided by the store, so all processes see the same one (RS-26, RS-47).

use super::backend::Opened;
use super::jobs::NOW;
use super::on_every_store;
use turnstone_domain::Timestamp;
use turnstone_domain::agent::errors::Breaker;
use turnstone_store::breakers::{BreakerKey, Passage};

on_every_store![
    the_fifth_failure_in_a_row_opens_it,
    a_success_forgets_what_failed_before,
    half_open_lets_three_through_and_closes_when_all_went_well,
    one_failure_opens_it_again,
    probes_of_a_dead_process_hold_nobody_up_for_ever,
    rare_calls_close_it_as_well,
    a_call_that_was_not_made_gives_its_place_back,
    concurrent_failures_all_count,
];

const RULE: Breaker =
    Breaker { enabled: true, failure_threshold: 5, timeout_ms: 60_000, half_open_requests: 3 };
const AFTER: Timestamp = Timestamp(NOW.0 + 60_000);

fn key() -> BreakerKey {
    BreakerKey::tool("desk", "search")
}

async fn fail(at: &Opened, times: usize, now: Timestamp) -> Option<Timestamp> {
    let mut open = None;
    for _ in 0..times {
        open = at.store.breakers.failed(&key(), &RULE, now).await.unwrap();
    }
    open
}

async fn pass(at: &Opened, now: Timestamp) -> Passage {
    at.store.breakers.pass(&key(), &RULE, now).await.unwrap()
}

async fn succeed(at: &Opened, probe: bool, now: Timestamp) {
    at.store.breakers.succeeded(&key(), &RULE, probe, now).await.unwrap();
}

/// RS-26: threshold 5, timeout 60 s.
async fn the_fifth_failure_in_a_row_opens_it(at: &Opened) {
    assert_eq!(fail(at, 4, NOW).await, None);
    assert_eq!(pass(at, NOW).await, Passage::Free);
    assert_eq!(fail(at, 1, NOW).await, Some(AFTER));
    assert_eq!(pass(at, AFTER.plus_ms(-1)).await, Passage::Refused { until: AFTER });
    // A call that left before it opened prolongs nothing.
    assert_eq!(fail(at, 1, NOW.plus_ms(10)).await, Some(AFTER));
    let other = BreakerKey::tool("other", "search");
    assert_eq!(at.store.breakers.pass(&other, &RULE, NOW).await.unwrap(), Passage::Free);
    let troubled = at.store.breakers.troubled().await.unwrap();
    assert_eq!((troubled.len(), troubled[0].open_until), (1, Some(AFTER)));
    assert_eq!(troubled[0].key, key());
}

async fn a_success_forgets_what_failed_before(at: &Opened) {
    fail(at, 4, NOW).await;
    succeed(at, false, NOW).await;
    assert_eq!(at.store.breakers.troubled().await.unwrap(), []);
    assert_eq!(fail(at, 4, NOW).await, None);
    // A success of a call that left before it opened closes nothing.
    fail(at, 1, NOW).await;
    succeed(at, false, NOW).await;
    assert_eq!(pass(at, NOW).await, Passage::Refused { until: AFTER });
}

/// RS-47: `half_open_requests` 3.
async fn half_open_lets_three_through_and_closes_when_all_went_well(at: &Opened) {
    fail(at, 5, NOW).await;
    for _ in 0..3 {
        assert_eq!(pass(at, AFTER).await, Passage::Probe);
    }
    assert!(matches!(pass(at, AFTER).await, Passage::Refused { until } if until > AFTER));
    succeed(at, true, AFTER).await;
    succeed(at, true, AFTER).await;
    assert!(matches!(pass(at, AFTER).await, Passage::Refused { .. }));
    succeed(at, true, AFTER).await;
    assert_eq!(pass(at, AFTER).await, Passage::Free);
    assert_eq!(at.store.breakers.troubled().await.unwrap(), []);
}

async fn one_failure_opens_it_again(at: &Opened) {
    fail(at, 5, NOW).await;
    assert_eq!(pass(at, AFTER).await, Passage::Probe);
    assert_eq!(pass(at, AFTER).await, Passage::Probe);
    let again = AFTER.plus_ms(60_000);
    assert_eq!(fail(at, 1, AFTER).await, Some(again));
    // The other probe comes back well, too late.
    succeed(at, true, AFTER.plus_ms(5)).await;
    assert_eq!(pass(at, again.plus_ms(-1)).await, Passage::Refused { until: again });
    assert_eq!(pass(at, again).await, Passage::Probe);
}

async fn probes_of_a_dead_process_hold_nobody_up_for_ever(at: &Opened) {
    fail(at, 5, NOW).await;
    for _ in 0..3 {
        assert_eq!(pass(at, AFTER).await, Passage::Probe);
    }
    assert!(matches!(pass(at, AFTER.plus_ms(59_999)).await, Passage::Refused { .. }));
    assert_eq!(pass(at, AFTER.plus_ms(60_000)).await, Passage::Probe);
}

/// RS-47: three that went well close it, however long it is from one to the next.
async fn rare_calls_close_it_as_well(at: &Opened) {
    fail(at, 5, NOW).await;
    for hour in 1..=3 {
        let now = NOW.plus_ms(hour * 3_600_000);
        assert_eq!(pass(at, now).await, Passage::Probe);
        succeed(at, true, now).await;
    }
    assert_eq!(at.store.breakers.troubled().await.unwrap(), []);
}

async fn a_call_that_was_not_made_gives_its_place_back(at: &Opened) {
    fail(at, 5, NOW).await;
    for _ in 0..3 {
        assert_eq!(pass(at, AFTER).await, Passage::Probe);
    }
    at.store.breakers.not_made(&key(), AFTER).await.unwrap();
    assert_eq!(pass(at, AFTER).await, Passage::Probe);
    assert!(matches!(pass(at, AFTER).await, Passage::Refused { .. }));
    // Nothing is given back of what went well.
    succeed(at, true, AFTER).await;
    for _ in 0..5 {
        at.store.breakers.not_made(&key(), AFTER).await.unwrap();
    }
    assert_eq!([pass(at, AFTER).await, pass(at, AFTER).await], [Passage::Probe, Passage::Probe]);
    assert!(matches!(pass(at, AFTER).await, Passage::Refused { .. }));
}

async fn concurrent_failures_all_count(at: &Opened) {
    let key = key();
    let failures = (0..5).map(|_| at.store.breakers.failed(&key, &RULE, NOW));
    let opened = futures::future::join_all(failures).await.into_iter().filter_map(Result::unwrap).count();
    assert_eq!(opened, 1, "the last of five, whichever it is");
    assert_eq!(pass(at, NOW).await, Passage::Refused { until: AFTER });
}
