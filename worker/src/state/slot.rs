//! The slot of a turn: the right to run in this worker, beside the lease, which is the right to write.

use crate::writes::UnderWay;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A slot of a worker. Its number of slots bounds the turns that a worker runs at once. A turn that waits only for
/// another server releases its slot to other jobs, and takes one again later. It keeps its lease and the reservation of
/// the call.
///
/// The default belongs to no worker: to release or to take it has no effect.
#[derive(Clone, Debug, Default)]
pub struct TurnSlot(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    slots: Arc<Semaphore>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// The first write of the job, until it is made.
    first_write: Mutex<Option<UnderWay>>,
}

impl Inner {
    fn permit(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnSlot {
    /// Returns the slot of this permit, with the first write of its job. The permit's semaphore has as many permits as the
    /// worker has slots.
    #[must_use]
    pub fn of(permit: OwnedSemaphorePermit, first_write: UnderWay) -> Self {
        let slots = Arc::clone(permit.semaphore());
        let (permit, first_write) = (Mutex::new(Some(permit)), Mutex::new(Some(first_write)));
        Self(Some(Arc::new(Inner { slots, permit, first_write })))
    }

    /// Returns the first write of the job, once.
    #[must_use]
    pub fn first_write(&self) -> Option<UnderWay> {
        self.0.as_ref()?.first_write.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns true if a slot is taken.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.permit().is_some())
    }

    /// Releases the slot to other jobs.
    pub fn release(&self) {
        if let Some(inner) = &self.0 {
            inner.permit().take();
        }
    }

    /// Takes a slot again, as soon as one is free.
    pub async fn take_again(&self) {
        let Some(inner) = self.0.as_ref().filter(|_| !self.is_taken()) else { return };
        // The worker never closes the semaphore.
        if let Ok(permit) = Arc::clone(&inner.slots).acquire_owned().await {
            *inner.permit() = Some(permit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writes::Writes;

    #[tokio::test]
    async fn a_released_slot_is_taken_again_when_it_is_free() {
        let slots = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&slots).try_acquire_owned().unwrap();
        let slot = TurnSlot::of(permit, Writes::default().begin());
        assert!(slot.first_write().is_some() && slot.first_write().is_none());
        let other = Arc::clone(&slots);
        assert!(slot.is_taken() && Arc::clone(&other).try_acquire_owned().is_err());
        slot.release();
        let theirs = other.try_acquire_owned().unwrap();
        let again = slot.clone();
        let waiting = tokio::spawn(async move { again.take_again().await });
        tokio::task::yield_now().await;
        assert!(!slot.is_taken());
        drop(theirs);
        waiting.await.unwrap();
        assert!(slot.is_taken());
        TurnSlot::default().take_again().await;
    }
}
