//! The listener to an answer that the model is still writing.

use std::fmt;
use std::sync::Arc;

type Hear = dyn Fn(&str) + Send + Sync;

/// Receives pieces of the text in order, as they arrive; the answer may still turn out to be invalid. The
/// default discards them.
#[derive(Clone, Default)]
pub struct Listener(Option<Arc<Hear>>);

impl Listener {
    /// Returns a listener that calls `hear` with each piece. `hear` must not block.
    #[must_use]
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    /// Returns true if a callback is set.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.0.is_some()
    }

    /// Passes a piece of the text to the callback.
    pub fn hear(&self, text: &str) {
        if let Some(hear) = self.0.as_ref().filter(|_| !text.is_empty()) {
            hear(text);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.listens() { "Listener" } else { "Listener(nobody)" })
    }
}
