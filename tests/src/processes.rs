//! Limits the number of tests that run processes at once, and ends the processes of a test run that is
//! killed.

use crate::scratch::sweeper;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::process::{Child, Command};

/// The longest that a test waits for its turn; then it starts its processes anyway. Its thread waits, so its
/// other futures stop meanwhile: the wait is far shorter than the deadlines of their requests.
const PATIENCE: Duration = Duration::from_secs(20);

/// The number of running processes per test, by the name of the test.
static RUNNING: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);
static ENDED: Condvar = Condvar::new();

/// The right of a test to run a process. At most as many tests as there are cores have one at the same time.
/// A test that has one gets more without waiting.
#[derive(Debug)]
struct Turn {
    test: Option<String>,
}

/// Waits for a turn. Blocks the thread of the test.
fn turn() -> Turn {
    // libtest names a test's thread after the test. A task of the test on another thread must not wait for
    // the test.
    let current = std::thread::current();
    let Some(test) = current.name().filter(|name| name.contains("::")).map(str::to_owned) else {
        return Turn { test: None };
    };
    let most = available_parallelism().map_or(2, usize::from);
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let full = |running: &mut Option<HashMap<String, usize>>| {
        let running = running.get_or_insert_default();
        running.len() >= most && !running.contains_key(&test)
    };
    let waited = ENDED.wait_timeout_while(running, PATIENCE, full);
    let (mut running, _) = waited.unwrap_or_else(PoisonError::into_inner);
    *running.get_or_insert_default().entry(test.clone()).or_default() += 1;
    Turn { test: Some(test) }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(test) = self.test.take() else { return };
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let running = running.get_or_insert_default();
        if let Some(count) = running.get_mut(&test) {
            *count -= 1;
            if *count == 0 {
                running.remove(&test);
                ENDED.notify_all();
            }
        }
    }
}

/// A process that is killed when this is dropped, and with the test process in every case.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: u32,
    _turn: Turn,
}

/// Starts a process in a turn of the test.
///
/// # Panics
/// When the program cannot be started.
pub fn start(command: &mut Command) -> Process {
    let turn = turn();
    let child = command.kill_on_drop(true).spawn();
    let child =
        child.unwrap_or_else(|error| panic!("{:?} does not start: {error}", command.as_std().get_program()));
    let pid = child.id().expect("a process that was not waited for");
    sweeper().tell(&format!("started {pid}"));
    Process { child, pid, _turn: turn }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        sweeper().tell(&format!("ended {}", self.pid));
    }
}
