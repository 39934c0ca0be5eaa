//! Who hears an answer while the model still speaks.

use std::fmt;
use std::sync::Arc;

type Hear = dyn Fn(&str) + Send + Sync;

/// Hears pieces of the text in order, as they come; what is heard may still turn out to be no answer at all. By default
/// nobody listens.
#[derive(Clone, Default)]
pub struct Listener(Option<Arc<Hear>>);

impl Listener {
    /// Lets `hear` hear. It must not block.
    #[must_use]
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    /// Whether anybody listens.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.0.is_some()
    }

    /// Says a piece of the text.
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
