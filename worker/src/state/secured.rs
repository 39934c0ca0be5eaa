//! The proof that nothing paid is left to commit.

use std::marker::PhantomData;

/// The proof that every answer that the turn has paid for is committed. Every function that calls another process takes
/// one, so a kill during that call loses no answer (ADR 0008). It borrows the outbox, so the turn cannot buy anything
/// while the proof is in use.
#[derive(Clone, Copy, Debug)]
pub struct Secured<'t>(PhantomData<&'t ()>);

impl Secured<'_> {
    /// Returns the proof; only the outbox knows that it is one.
    pub(super) fn proven() -> Self {
        Self(PhantomData)
    }
}

#[cfg(test)]
impl Secured<'static> {
    /// Returns a proof without a turn, for tests of functions that take one.
    pub fn assumed() -> Self {
        Self(PhantomData)
    }
}
