//! A semaphore whose holders are threads.
//!
//! A semaphore of futures would not do. A future that was given a place holds it until a thread of the runtime polls
//! it, and all of these threads may be waiting for a place.

use std::sync::{Condvar, Mutex, PoisonError};

/// Places that threads wait for.
pub(crate) struct Places {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A place that is taken until it is dropped.
pub(crate) struct Place<'a>(&'a Places);

impl Places {
    pub(crate) const fn new(free: usize) -> Self {
        Self { free: Mutex::new(free), freed: Condvar::new() }
    }

    /// Returns a place once one is free.
    pub(crate) fn wait(&self) -> Place<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Place(self)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
