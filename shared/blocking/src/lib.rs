//! Work that takes up to tenths of a second, such as compiling a schema: away from the threads that everything else runs on,
//! and two pieces at once in the whole process.
//!
//! Schemas, patterns, expressions and documents come from outside. What one of them may cost is bounded where it is read; here
//! it is bounded how many cost that at the same time. Work that waits for its turn delays nothing else.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::{block_in_place, spawn_blocking};

/// The pieces of work that run at once.
const AT_ONCE: usize = 2;

/// The places of this process. One memory and the same processors serve all its parts.
static PLACES: Semaphore = Semaphore::const_new(AT_ONCE);

/// The work panicked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the work did not come to its end")]
pub struct Panicked;

/// Does the work on a thread that may block. When the future is dropped, work that has begun keeps its place until it ends.
///
/// # Errors
/// [`Panicked`].
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
    let place = PLACES.acquire().await.map_err(|_| Panicked)?;
    let done = spawn_blocking(move || {
        let _place = place;
        work()
    });
    done.await.map_err(|_| Panicked)
}

/// Does the work on this thread, after its other tasks went to another one: for code that cannot wait. On a runtime of one
/// thread nothing else runs meanwhile.
pub fn in_place<T>(work: impl FnOnce() -> T) -> T {
    match runtime_of_many() {
        Some(runtime) => block_in_place(|| {
            let _place = runtime.block_on(PLACES.acquire());
            work()
        }),
        None => work(),
    }
}

/// As [`in_place`], for work that waits for a thread of its own and takes no place: policy expressions.
pub fn wait_in_place<T>(work: impl FnOnce() -> T) -> T {
    if runtime_of_many().is_some() { block_in_place(work) } else { work() }
}

fn runtime_of_many() -> Option<Handle> {
    Handle::try_current().ok().filter(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    /// Counts how many pieces of work run at once, and the most that ever did.
    #[derive(Default)]
    struct Gauge {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Gauge {
        fn work(&self) {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            (0..1_000).for_each(|_| std::thread::yield_now());
            self.now.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_more_than_two_pieces_run_at_once() {
        let gauge = Arc::new(Gauge::default());
        let mut tasks = tokio::task::JoinSet::new();
        for at in 0..40 {
            let gauge = Arc::clone(&gauge);
            tasks.spawn(async move {
                match at % 2 {
                    0 => run(move || gauge.work()).await.unwrap(),
                    _ => in_place(|| gauge.work()),
                }
            });
        }
        tasks.join_all().await;
        assert!(gauge.most.load(Ordering::SeqCst) <= AT_ONCE);
    }

    /// The only thread of the runtime is in the middle of work, which ends when another task ran.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_while_work_blocks_in_place() {
        let (done, other) = mpsc::channel();
        let worked = tokio::spawn(async move {
            tokio::spawn(async move { done.send(7) });
            in_place(|| other.recv())
        });
        assert_eq!(worked.await.unwrap(), Ok(7));
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_gives_the_place_back() {
        for _ in 0..=AT_ONCE {
            let failed = run(|| std::panic::resume_unwind(Box::new("a bug"))).await;
            assert_eq!(failed, Err::<(), _>(Panicked));
        }
        assert_eq!(run(|| 7).await, Ok(7));
        assert_eq!(in_place(|| 8), 8);
    }
}
