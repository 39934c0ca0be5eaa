//! Threads for work that takes up to tenths of a second, such as compiling a schema. They are not threads of the async
//! runtime, and at most two pieces of work run at once in the whole process.
//!
//! Schemas, patterns, expressions and documents come from outside. Their readers bound the cost of one. This crate
//! bounds how many run at the same time, and how many threads wait for them.
//!
//! ```text
//!  async callers ─ wait, at most so many ─▶ two places ─▶ threads that may block ─▶ outcomes, to the callers
//! ```

mod places;

use places::Places;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::{block_in_place, spawn_blocking};

/// The number of pieces of work that run at once.
const AT_ONCE: usize = 2;

/// The places of this process, which all of its parts share.
static PLACES: Places = Places::new(AT_ONCE);

/// The permits of [`run`]: work with a permit has a thread. Other work waits as futures, which cost no thread.
static RUNNING: Semaphore = Semaphore::const_new(AT_ONCE);

/// The number of threads that may work or wait in place at once. The runtime starts another thread for each of them. It
/// has at most 512 for this, for files and for host names. Without a bound, the turns of one worker could take them
/// all, and the runtime would stop until one was free.
const AWAY: usize = 32;

/// The permits for threads that leave the runtime.
static LEAVING: Semaphore = Semaphore::const_new(AWAY);

/// The work panicked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the work did not come to its end")]
pub struct Panicked;

/// Does the work on a thread that may block. When the future is dropped, work that has begun keeps its place until it ends.
///
/// # Errors
/// [`Panicked`].
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
    let running = RUNNING.acquire().await.map_err(|_| Panicked)?;
    let done = spawn_blocking(move || {
        let _running = running;
        let _place = PLACES.wait();
        work()
    });
    done.await.map_err(|_| Panicked)
}

/// Does the work on this thread, for code that cannot wait; the thread's other tasks move to another one. On a runtime
/// of one thread, and while 32 threads have left theirs, they wait for the work.
pub fn in_place<T>(work: impl FnOnce() -> T) -> T {
    match runtime_of_many() {
        true => away(|| {
            let _place = PLACES.wait();
            work()
        }),
        false => work(),
    }
}

/// As [`in_place`], for work that waits for a thread of its own and takes no place: policy expressions.
pub fn wait_in_place<T>(work: impl FnOnce() -> T) -> T {
    if runtime_of_many() { away(work) } else { work() }
}

/// Leaves the runtime for the work, if a permit is free. Otherwise the work runs on the runtime's own thread. At most
/// as many such pieces run as the runtime has threads, and each ends without any other task.
fn away<T>(work: impl FnOnce() -> T) -> T {
    match LEAVING.try_acquire() {
        Ok(_left) => block_in_place(work),
        Err(_) => work(),
    }
}

fn runtime_of_many() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use tokio::sync::Mutex;

    /// The tests share the places and the threads of the process.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

    /// Counts the pieces of work that run at once, and their maximum.
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
        let _alone = ONE_AT_A_TIME.lock().await;
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

    /// The only thread of the runtime is in the middle of work that ends after another task ran.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_while_work_blocks_in_place() {
        let _alone = ONE_AT_A_TIME.lock().await;
        let (done, other) = mpsc::channel();
        let worked = tokio::spawn(async move {
            tokio::spawn(async move { done.send(7) });
            in_place(|| other.recv())
        });
        assert_eq!(worked.await.unwrap(), Ok(7));
    }

    /// Both places are taken when the tasks start.
    #[test]
    fn a_bounded_number_of_threads_waits_in_place() {
        const WORKERS: usize = 4;
        let _alone = ONE_AT_A_TIME.blocking_lock();
        let started = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&started);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .on_thread_start(move || {
                counted.fetch_add(1, Ordering::SeqCst);
            })
            .build()
            .unwrap();
        let places: Vec<_> = (0..AT_ONCE).map(|_| PLACES.wait()).collect();
        let (come, coming) = mpsc::channel();
        let tasks: Vec<_> = (0..10 * AWAY)
            .map(|_| {
                let come = come.clone();
                runtime.spawn(async move {
                    come.send(()).unwrap();
                    in_place(std::thread::yield_now);
                })
            })
            .collect();
        // Each waiting thread brings one task and no other one.
        for _ in 0..AWAY + WORKERS {
            coming.recv().unwrap();
        }
        drop(places);
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        // A thread that has come back is idle slightly later than the next one may leave.
        let started = started.load(Ordering::SeqCst);
        assert!(started <= WORKERS + 2 * AWAY, "{started} threads were started");
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_gives_the_place_back() {
        let _alone = ONE_AT_A_TIME.lock().await;
        for _ in 0..=AT_ONCE {
            let failed = run(|| std::panic::resume_unwind(Box::new("a bug"))).await;
            assert_eq!(failed, Err::<(), _>(Panicked));
        }
        assert_eq!(run(|| 7).await, Ok(7));
        assert_eq!(in_place(|| 8), 8);
    }
}
