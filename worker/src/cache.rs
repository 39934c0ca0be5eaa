//! A cache of values that are costly to make.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The newest values by their keys. When it is full, it is emptied.
pub struct Cache<T> {
    kept: Mutex<HashMap<String, T>>,
    most: usize,
}

impl<T: Clone> Cache<T> {
    /// Returns a cache of so many values.
    pub fn of(most: usize) -> Self {
        Self { kept: Mutex::default(), most }
    }

    /// Returns the value of this key, and makes it if the cache has none.
    ///
    /// # Errors
    /// The error of `make`; then nothing is kept.
    pub fn get_or<E>(&self, key: String, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if let Some(known) = self.kept().get(&key) {
            return Ok(known.clone());
        }
        // Made without the lock, because it may take long.
        let made = make()?;
        let mut kept = self.kept();
        if kept.len() >= self.most {
            kept.clear();
        }
        kept.insert(key, made.clone());
        Ok(made)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
