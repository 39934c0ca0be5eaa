//! When a delivery that failed is posted again.

use backon::{BackoffBuilder, ExponentialBuilder};
use std::time::Duration;
use turnstone_domain::digest;

/// A delivery is posted this often before it is given up: over about a day.
const ATTEMPTS: usize = 8;

/// Returns the pause after the attempt with this number (from 1) failed, in milliseconds; `None` when it was the last
/// one.
///
/// Half a minute, two, eight, half an hour, two hours, six, six, each up to twice as long. The extra time depends on
/// the delivery alone, so that deliveries that failed together are not repeated together.
pub(super) fn delay_ms(delivery: &str, attempts: i64) -> Option<i64> {
    let done = usize::try_from(attempts).unwrap_or(usize::MAX).max(1);
    let seed = digest::of_text(delivery).get(..16).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let delay = ExponentialBuilder::new()
        .with_min_delay(Duration::from_secs(30))
        .with_factor(4.0)
        .with_max_delay(Duration::from_secs(6 * 60 * 60))
        .with_max_times(ATTEMPTS - 1)
        .with_jitter()
        .with_jitter_seed(seed.unwrap_or_default())
        .build()
        .nth(done - 1)?;
    Some(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_attempts_spread_over_about_a_day() {
        let least = [30, 120, 480, 1_920, 7_680, 21_600, 21_600].map(|seconds: i64| seconds * 1_000);
        for (attempt, least) in (1..).zip(least) {
            let delay = delay_ms("msg_a", attempt).unwrap();
            assert!((least..=2 * least).contains(&delay), "after {attempt}: {delay}");
            assert_eq!(delay_ms("msg_a", attempt), Some(delay), "the same delivery waits as long");
        }
        assert_eq!(delay_ms("msg_a", 8), None);
        assert_ne!(delay_ms("msg_a", 3), delay_ms("msg_b", 3));
    }
}
