//! The signals between a turn and the worker that runs it. They stay within the process; the store knows nothing of them.

use super::slot::TurnSlot;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A signal between a turn and its worker. The lease keeper raises all of them but `Settling`. Several may be raised at
/// once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Signal {
    /// The lease expired, because this process or the store did not run for a while: stop at once, write nothing, and
    /// log it.
    Lost = 1,
    /// The lease was ended on purpose, because the job was cancelled, expired or timed out: stop at once, and write
    /// nothing.
    Revoked = 2,
    /// A job of a higher priority waits for the slot: stop before the next turn.
    GiveWay = 4,
    /// Raised by the turn when only its settlement is left. The worker frees the slot at once, so that the settlement
    /// and the next claim may share a commit.
    Settling = 8,
    /// A client asked to repeat calls of this job: read the journal before the next model call.
    CallsAgain = 16,
}

/// The signals of one turn. Clones are the same signals.
#[derive(Clone, Debug)]
pub struct Signals {
    /// The worker drains, or the job is paused: stop after the current phase.
    pub draining: CancellationToken,
    /// The slot of the turn.
    pub slot: TurnSlot,
    raised: Arc<Raised>,
}

#[derive(Debug, Default)]
struct Raised {
    signals: AtomicU8,
    changed: Notify,
}

impl Signals {
    /// Returns signals of which none is raised.
    pub fn new(draining: CancellationToken, slot: TurnSlot) -> Self {
        Self { draining, slot, raised: Arc::default() }
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

    /// Lowers a signal, so that it can be raised again; returns true if it was raised.
    pub fn lower(&self, signal: Signal) -> bool {
        self.raised.signals.fetch_and(!(signal as u8), Ordering::AcqRel) & signal as u8 != 0
    }

    /// Waits until one of these signals is raised, and returns it. Of several that are raised it returns the first of the
    /// list.
    pub async fn any_of(&self, signals: &[Signal]) -> Signal {
        loop {
            // Registered before the check, so that a signal in between wakes it.
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
