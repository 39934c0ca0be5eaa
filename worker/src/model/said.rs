//! The listener to an answer that the model is still writing.

use std::fmt;
use std::sync::Arc;

type Hear = dyn Fn(&str) + Send + Sync;

/// Receives pieces of the text in order, as they arrive; the answer may still turn out to be invalid. It also receives the id
/// of an answer that the provider keeps. The default discards both.
#[derive(Clone, Default)]
pub struct Listener {
    text: Option<Arc<Hear>>,
    id: Option<Arc<Hear>>,
}

impl Listener {
    /// Returns a listener that calls `hear` with each piece. `hear` must not block.
    #[must_use]
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { text: Some(Arc::new(hear)), id: None }
    }

    /// The same with a callback for the provider's id of the answer, which must not block.
    #[must_use]
    pub fn with_id(self, note: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { id: Some(Arc::new(note)), ..self }
    }

    /// Returns true if a callback for the text is set.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.text.is_some()
    }

    /// Passes a piece of the text to the callback.
    pub fn hear(&self, text: &str) {
        if let Some(hear) = self.text.as_ref().filter(|_| !text.is_empty()) {
            hear(text);
        }
    }

    /// Passes the provider's id of the answer to its callback.
    pub fn note_id(&self, id: &str) {
        if let Some(note) = self.id.as_ref().filter(|_| !id.is_empty()) {
            note(id);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.listens() { "Listener" } else { "Listener(nobody)" })
    }
}
