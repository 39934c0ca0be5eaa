//! Pages that can be searched, all of them or those below a path.

use super::overlap;
use serde_json::{Value, json};

/// The most pages of one search.
const PAGES: usize = 3;

/// A page.
pub(crate) struct Page {
    pub(crate) path: &'static str,
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
}

/// The pages below `path` that answer the question best: `{"pages": [{"path", "title", "text"}]}`.
pub(crate) fn found(pages: &[Page], question: &str, path: &str) -> Value {
    let best = overlap::best(question, pages, |page| (page.title, page.text), pages.len());
    let below: Value = best
        .into_iter()
        .filter(|(_, page)| page.path.starts_with(path))
        .take(PAGES)
        .map(|(_, page)| json!({"path": page.path, "title": page.title, "text": page.text}))
        .collect();
    json!({"pages": below})
}
