//! The audit: a chain of entries, each with the hash of the one before. A removed, changed or reordered entry breaks it.

use crate::{Timestamp, digest};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One entry: a change that was made, or a request that was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Its number; the first is 1, and there are no gaps.
    pub seq: i64,
    /// When the change was requested.
    pub at: Timestamp,
    /// The principal; `-` for a request without a known one.
    pub principal: String,
    /// The tenant of the request; `None` for the fleet.
    pub tenant: Option<String>,
    /// The operation: method and path, as the OpenAPI document has them.
    pub action: String,
    /// The path of the request, which names its target.
    pub target: String,
    /// `done`, or the status and code of a refusal.
    pub outcome: String,
    /// SHA-256 of what was there before, where the change replaces something.
    pub before: Option<String>,
    /// SHA-256 of the request's body.
    pub after: Option<String>,
    /// The address of the client.
    pub source: Option<String>,
    /// The id of the request.
    pub request_id: Option<String>,
    /// The hash of the entry before; empty for the first.
    pub previous: String,
    /// The hash of this entry.
    pub hash: String,
}

/// The end of the chain.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AuditHead {
    /// The number of the last entry; 0 for an empty chain.
    pub seq: i64,
    /// The hash of the last entry; empty for an empty chain.
    pub hash: String,
}

/// The place where a chain is broken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, thiserror::Error)]
#[error("entry {seq}: {why}")]
pub struct BrokenChain {
    /// The number of the entry.
    pub seq: i64,
    /// The fault.
    pub why: String,
}

impl AuditEntry {
    /// Returns the entry as the next one of a chain.
    #[must_use]
    pub fn after(mut self, head: &AuditHead) -> Self {
        self.seq = head.seq + 1;
        self.previous.clone_from(&head.hash);
        self.hash = self.digest();
        self
    }

    /// Returns the hash of all its members but `hash`.
    #[must_use]
    pub fn digest(&self) -> String {
        digest::of_json(&json!([
            self.seq,
            self.at.0,
            self.principal,
            self.tenant,
            self.action,
            self.target,
            self.outcome,
            self.before,
            self.after,
            self.source,
            self.request_id,
            self.previous,
        ]))
    }

    /// Returns the head of a chain that ends with this entry.
    #[must_use]
    pub fn head(&self) -> AuditHead {
        AuditHead { seq: self.seq, hash: self.hash.clone() }
    }
}

impl AuditHead {
    /// Checks that an entry follows this head, and returns the head after it.
    ///
    /// # Errors
    /// The entry is missing, changed, or in another order.
    pub fn followed_by(&self, entry: &AuditEntry) -> Result<Self, BrokenChain> {
        let broken = |why: &str| Err(BrokenChain { seq: entry.seq, why: why.to_owned() });
        if entry.seq != self.seq + 1 {
            return broken(&format!(
                "follows entry {}; entries between them are missing, or in another order",
                self.seq
            ));
        }
        if entry.previous != self.hash {
            return broken("does not have the hash of the entry before; one of both was replaced");
        }
        if entry.hash != entry.digest() {
            return broken("was changed: its hash is another one");
        }
        Ok(entry.head())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: &str) -> AuditEntry {
        AuditEntry {
            seq: 0,
            at: Timestamp(5),
            principal: "ann".to_owned(),
            tenant: None,
            action: action.to_owned(),
            target: "/queues/mail".to_owned(),
            outcome: "done".to_owned(),
            before: None,
            after: Some("aa".to_owned()),
            source: Some("127.0.0.1".to_owned()),
            request_id: None,
            previous: String::new(),
            hash: String::new(),
        }
    }

    fn chain() -> Vec<AuditEntry> {
        let mut head = AuditHead::default();
        let mut entries = Vec::new();
        for action in ["a", "b", "c", "d"] {
            let next = entry(action).after(&head);
            head = next.head();
            entries.push(next);
        }
        entries
    }

    fn verified(entries: &[AuditEntry]) -> Result<AuditHead, i64> {
        let mut head = AuditHead::default();
        for entry in entries {
            head = head.followed_by(entry).map_err(|broken| broken.seq)?;
        }
        Ok(head)
    }

    #[test]
    fn a_whole_chain_is_verified_and_every_change_of_it_is_found() {
        let whole = chain();
        assert_eq!(verified(&whole), Ok(whole[3].head()));
        let cut: Vec<_> = whole.iter().filter(|entry| entry.seq != 2).cloned().collect();
        assert_eq!(verified(&cut), Err(3));
        let mut reordered = whole.clone();
        reordered.swap(1, 2);
        assert_eq!(verified(&reordered), Err(3));
        let mut changed = whole.clone();
        changed[1].principal = "ben".to_owned();
        assert_eq!(verified(&changed), Err(2));
        changed[1].hash = changed[1].digest();
        assert_eq!(verified(&changed), Err(3), "the next entry has the former hash");
        assert_ne!(verified(&whole[..3]), Ok(whole[3].head()), "a cut end differs from the head");
    }
}
