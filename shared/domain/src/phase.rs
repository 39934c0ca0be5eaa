//! The seven phases of a turn (OSSA §1): closed and ordered.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// One phase of a turn, in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Ids, trace context, turn number (OSSA §1.1).
    Init,
    /// Inputs become canonical messages (OSSA §1.2).
    Norm,
    /// Tools are resolved and their schemas checked (OSSA §1.3).
    Resol,
    /// The one model call of the turn (OSSA §1.4).
    Infer,
    /// The tool calls the model asked for (OSSA §1.5).
    Exec,
    /// State changes (OSSA §1.6).
    Persist,
    /// Telemetry (OSSA §1.7).
    Emit,
}

impl Phase {
    /// All phases in order.
    pub const ALL: [Self; 7] =
        [Self::Init, Self::Norm, Self::Resol, Self::Infer, Self::Exec, Self::Persist, Self::Emit];

    /// Returns the phase after this one; `None` after [`Phase::Emit`].
    #[must_use]
    pub fn next(self) -> Option<Self> {
        Self::ALL.get(self.index() + 1).copied()
    }

    /// 0 for INIT … 6 for EMIT.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the index, as stored in the database.
    #[must_use]
    pub fn number(self) -> i64 {
        self as i64
    }

    /// Returns the phase with this index, as stored in the database.
    #[must_use]
    pub fn from_index(index: i64) -> Option<Self> {
        usize::try_from(index).ok().and_then(|i| Self::ALL.get(i)).copied()
    }

    /// Returns the phase in lower case, as on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        ["init", "norm", "resol", "infer", "exec", "persist", "emit"][self.index()]
    }

    /// Returns the phase that runs next after the checkpoints of an unfinished turn; `None` when the turn is complete.
    ///
    /// Phases are committed in order, so the number of checkpoints determines the next phase.
    #[must_use]
    pub fn resume_after(done: usize) -> Option<Self> {
        Self::ALL.get(done).copied()
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_closed() {
        let mut walked = vec![Phase::Init];
        while let Some(next) = walked.last().and_then(|p| p.next()) {
            walked.push(next);
        }
        assert_eq!(walked, Phase::ALL);
        assert_eq!(Phase::from_index(7), None);
        assert_eq!(Phase::resume_after(3), Some(Phase::Infer));
        assert_eq!(Phase::resume_after(7), None);
    }
}
