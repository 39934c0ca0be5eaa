//! The signature of a document, in its foot. It covers the digest of all other lines.

use super::Foot;
use crate::attest::Signature;

/// Returns the text that the signature of a document covers.
pub(super) fn signed_text(sha256: &str) -> String {
    format!("turnstone-export-v1\nsha256={sha256}\n")
}

/// Returns the signature of a document with the text that it covers; `None` without one. Nothing is checked:
/// [`EngagementRecord::read`](super::EngagementRecord::read) compares the digest with the document.
#[must_use]
pub fn signature_of(document: &str) -> Option<(String, Signature)> {
    let foot: Foot = serde_json::from_str(document.trim_end_matches('\n').lines().next_back()?).ok()?;
    Some((signed_text(&foot.sha256), foot.signature?))
}
