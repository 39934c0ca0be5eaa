//! Waits of tests: each has a deadline, and its failure names the event that did not come.
//!
//! Pauses and deadlines are in real time, also while a test has paused the timers of its runtime.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use tokio::sync::oneshot;

/// The deadline of a wait that sets none. A busy machine may stop for seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The first pause between two checks. Each pause is 1.5 times as long as the one before it.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause between two checks.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// The steps in which a wait approaches its deadline.
const STEP: Duration = Duration::from_millis(500);

/// Waits until the condition holds.
///
/// # Panics
/// When it does not hold within [`PATIENCE`].
pub async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    until_within(what, PATIENCE, condition).await;
}

/// Waits until the condition holds.
///
/// # Panics
/// When it does not hold within `patience`.
pub async fn until_within(what: &str, patience: Duration, condition: impl AsyncFnMut() -> bool) {
    assert!(holds(patience, condition).await, "{}", late(what, patience));
}

/// Returns true as soon as the condition holds, and false when it does not hold within `patience`.
pub async fn holds(patience: Duration, mut condition: impl AsyncFnMut() -> bool) -> bool {
    let look = async || condition().await.then_some(());
    looks(patience, look).await.is_some()
}

/// Checks repeatedly, and returns the first value that a check finds.
///
/// # Panics
/// When no check finds one within [`PATIENCE`].
pub async fn found<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    found_within(what, PATIENCE, look).await
}

/// Checks repeatedly, and returns the first value that a check finds.
///
/// # Panics
/// When no check finds one within `patience`.
pub async fn found_within<T>(what: &str, patience: Duration, look: impl AsyncFnMut() -> Option<T>) -> T {
    looks(patience, look).await.unwrap_or_else(|| panic!("{}", late(what, patience)))
}

/// Returns the output of a future.
///
/// # Panics
/// When the future does not end within [`PATIENCE`].
pub async fn output<F: Future>(what: &str, future: F) -> F::Output {
    output_within(what, PATIENCE, future).await
}

/// Returns the output of a future.
///
/// # Panics
/// When the future does not end within `patience`.
pub async fn output_within<F: Future>(what: &str, patience: Duration, future: F) -> F::Output {
    ends(patience, future).await.unwrap_or_else(|| panic!("{}", late(what, patience)))
}

/// Returns the output of a future, or none when it does not end within `patience`.
pub async fn ends<F: Future>(patience: Duration, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = attended(patience) => None,
    }
}

/// Ends when this much real time has passed in which the wait itself could run. A stop of the process, or of
/// the thread of the test, counts as one step: the awaited future stopped as well.
async fn attended(time: Duration) {
    let mut left = time;
    while !left.is_zero() {
        let step = left.min(STEP);
        real_time(step).await;
        left -= step;
    }
}

async fn looks<T>(patience: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    ends(patience, async {
        let mut pauses = Pauses::default();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            pauses.next().await;
        }
    })
    .await
}

/// The pauses between checks, each longer than the one before it. They are for the loop of a spawned future,
/// which can call no asynchronous closure; [`output`] gives such a loop its deadline.
#[derive(Debug)]
pub struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    /// Pauses once.
    pub async fn next(&mut self) {
        real_time(self.0).await;
        self.0 = (self.0 * 3 / 2).min(LONGEST_PAUSE);
    }
}

fn late(what: &str, patience: Duration) -> String {
    format!("waited {patience:?} without success: {what}")
}

/// Ends when this much real time has passed. A thread waits, because the runtime's timers may be paused.
async fn real_time(time: Duration) {
    let (passed, passes) = oneshot::channel();
    // Dropped with this future, which ends the thread.
    let (_waiting, waited_for) = channel::<()>();
    std::thread::spawn(move || {
        if waited_for.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            let _ = passed.send(());
        }
    });
    let _ = passes.await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::AssertUnwindSafe;

    const SOON: Duration = Duration::from_millis(50);

    async fn complaint(wait: impl Future<Output = ()>) -> String {
        let panicked = futures::FutureExt::catch_unwind(AssertUnwindSafe(wait)).await.unwrap_err();
        *panicked.downcast::<String>().unwrap()
    }

    #[tokio::test]
    async fn a_late_wait_names_its_event_and_its_deadline() {
        let never = until_within("the moon is full", SOON, async || false);
        assert_eq!(complaint(never).await, "waited 50ms without success: the moon is full");
        let hangs = until_within("the moon answers", SOON, async || std::future::pending().await);
        assert_eq!(complaint(hangs).await, "waited 50ms without success: the moon answers");
    }

    #[tokio::test]
    async fn a_wait_ends_with_its_event() {
        let mut looks = 0;
        until("the third look", async || {
            looks += 1;
            looks == 3
        })
        .await;
        assert_eq!(looks, 3);
        let mut left = vec![Some("found"), None];
        assert_eq!(found("a value", async || left.pop().unwrap()).await, "found");
        assert_eq!(output("an output", async { 7 }).await, 7);
    }

    /// The start of a process blocks the thread of its test, and with it all of the test's futures.
    #[tokio::test]
    async fn a_stopped_thread_comes_no_nearer_to_the_deadline() {
        let stopped = std::cell::Cell::new(false);
        let looks = until_within("the thread continues", 2 * STEP, async || {
            let seen = stopped.get();
            tokio::task::yield_now().await;
            seen
        });
        let stop = async {
            let (_waiting, waits) = channel::<()>();
            let _ = waits.recv_timeout(4 * STEP);
            stopped.set(true);
        };
        tokio::join!(looks, stop);
    }

    #[tokio::test(start_paused = true)]
    async fn paused_timers_stop_no_wait() {
        // The runtime does not advance paused timers as long as something blocks.
        let (end, ended) = channel::<()>();
        let blocked = tokio::task::spawn_blocking(move || ended.recv().is_err());
        assert!(!holds(SOON, async || false).await);
        drop(end);
        assert!(blocked.await.unwrap());
    }
}
