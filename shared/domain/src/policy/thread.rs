//! The thread on which expressions are parsed, evaluated and dropped.
//!
//! The parser and the evaluator recurse as deeply as an expression nests. On a stack of a few megabytes a hostile
//! expression would abort the whole process; 256 MiB are more than any expression of the allowed length can use.

use super::PolicyError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const STACK_BYTES: usize = 256 * 1024 * 1024;

/// How long a caller waits. An expression takes microseconds; one that takes this long is hostile, and is refused.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many threads may be alive: the one that takes work, and those that are still busy with given-up expressions.
const MAX_THREADS: usize = 8;

type Work = Box<dyn FnOnce() + Send>;

struct Desk {
    opened: u64,
    sender: Option<Sender<Work>>,
}

static DESK: Mutex<Desk> = Mutex::new(Desk { opened: 0, sender: None });
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Runs `work` on the policy thread and waits for its answer.
pub(super) fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, PolicyError> {
    let (answer, receiver) = mpsc::sync_channel(1);
    let desk = submit(Box::new(move || {
        // The caller may have given up waiting; then the answer is dropped.
        let _ = answer.send(work());
    }))?;
    receiver.recv_timeout(PATIENCE).map_err(|e| match e {
        RecvTimeoutError::Timeout => {
            leave(desk);
            PolicyError::GivenUp("it did not end within 5 seconds")
        }
        RecvTimeoutError::Disconnected => {
            PolicyError::GivenUp("the evaluator failed on it; simplify the expression")
        }
    })
}

/// Drops a value on the policy thread, without waiting.
pub(super) fn forget_there(value: impl Send + 'static) {
    // Without a thread it can only be dropped here.
    let _ = submit(Box::new(move || drop(value)));
}

/// Sends work to the open queue, opening one if there is none; returns the number of the queue.
fn submit(work: Work) -> Result<u64, PolicyError> {
    let mut desk = DESK.lock().unwrap_or_else(PoisonError::into_inner);
    let work = match &desk.sender {
        None => work,
        Some(sender) => match sender.send(work) {
            Ok(()) => return Ok(desk.opened),
            Err(unsent) => unsent.0,
        },
    };
    let sender = open()?;
    let sent = sender.send(work);
    desk.opened += 1;
    desk.sender = Some(sender);
    sent.map(|()| desk.opened).map_err(|_| PolicyError::GivenUp("the evaluator has stopped"))
}

/// Closes a queue that is stuck, so that the next caller gets another one. Its thread ends with its last work.
fn leave(stuck: u64) {
    let mut desk = DESK.lock().unwrap_or_else(PoisonError::into_inner);
    if desk.opened == stuck {
        desk.sender = None;
    }
}

fn open() -> Result<Sender<Work>, PolicyError> {
    if THREADS.fetch_add(1, Ordering::SeqCst) >= MAX_THREADS {
        THREADS.fetch_sub(1, Ordering::SeqCst);
        return Err(PolicyError::GivenUp("too many slow expressions are still running"));
    }
    let (sender, receiver) = mpsc::channel::<Work>();
    let serve = move || {
        while let Ok(work) = receiver.recv() {
            // A panic inside the parser must cost one expression, not the thread.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
        THREADS.fetch_sub(1, Ordering::SeqCst);
    };
    let spawned = std::thread::Builder::new().name("policy".to_owned()).stack_size(STACK_BYTES).spawn(serve);
    spawned.map(|_| sender).map_err(|_| {
        THREADS.fetch_sub(1, Ordering::SeqCst);
        PolicyError::GivenUp("no thread could be started for it; the machine is short of memory or threads")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_costs_one_expression_and_not_the_thread() {
        let failed: Result<(), _> = run(|| std::panic::resume_unwind(Box::new("a bug in the parser")));
        assert!(matches!(failed, Err(PolicyError::GivenUp(_))));
        assert_eq!(run(|| 7), Ok(7));
    }
}
