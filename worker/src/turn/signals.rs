//! The signals that end a turn from outside, and those that it gives its worker.

use super::place::TurnSlot;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A signal between a turn and its worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Signal {
    /// The lease expired, because this worker or its store was paused: stop at once, write nothing, and log
    /// it.
    Lost = 1,
    /// A cancellation ended the lease: stop at once, and write nothing.
    Revoked = 2,
    /// A more urgent job waits for the slot: stop before the next turn.
    GiveWay = 4,
    /// Raised by the turn when only its settlement is left. The worker may then claim the next job already, so
    /// that both share a commit.
    Settling = 8,
    /// A repetition of calls of this job was requested, so the journal must be read.
    CallsAgain = 16,
}

/// The signals of one turn. Clones are the same signals.
#[derive(Clone, Debug)]
pub struct Signals {
    /// The worker drains, or the job is paused: stop after the current phase.
    pub draining: CancellationToken,
    /// The slot of the turn.
    pub place: TurnSlot,
    raised: Arc<Raised>,
}

#[derive(Debug, Default)]
struct Raised {
    signals: AtomicU8,
    changed: Notify,
}

impl Signals {
    /// Returns signals of which none is raised.
    pub fn new(draining: CancellationToken, place: TurnSlot) -> Self {
        Self { draining, place, raised: Arc::default() }
    }

    /// Raises a signal.
    pub fn raise(&self, signal: Signal) {
        self.raised.signals.fetch_or(signal as u8, Ordering::AcqRel);
        self.raised.changed.notify_waiters();
    }

    /// Returns true if the signal is raised.
    pub fn is_raised(&self, signal: Signal) -> bool {
        self.raised.signals.load(Ordering::Acquire) & signal as u8 != 0
    }

    /// Lowers a signal; returns true if it was raised.
    pub fn lower(&self, signal: Signal) -> bool {
        self.raised.signals.fetch_and(!(signal as u8), Ordering::AcqRel) & signal as u8 != 0
    }

    /// Waits until one of these signals is raised, and returns the first of them that is.
    pub async fn any_of(&self, signals: &[Signal]) -> Signal {
        loop {
            // Registered before the look, so that a signal in between is noticed.
            let changed = self.raised.changed.notified();
            if let Some(raised) = signals.iter().find(|signal| self.is_raised(**signal)) {
                return *raised;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn a_waiting_turn_notices_its_own_signals_and_the_worst_one_first() {
        let signals = Signals::new(CancellationToken::new(), TurnSlot::default());
        let ends = [Signal::Lost, Signal::Revoked];
        let mut ended = Box::pin(signals.any_of(&ends));
        assert_eq!((&mut ended).now_or_never(), None);
        signals.raise(Signal::GiveWay);
        assert_eq!((&mut ended).now_or_never(), None, "another signal");
        signals.clone().raise(Signal::Revoked);
        signals.raise(Signal::Lost);
        assert_eq!(ended.now_or_never(), Some(Signal::Lost));
        assert!(signals.lower(Signal::Lost) && !signals.lower(Signal::Lost));
        assert_eq!(signals.any_of(&ends).now_or_never(), Some(Signal::Revoked));
    }
}
