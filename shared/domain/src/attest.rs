//! The attestation that jobs request and queues demand (OJS attest; the published cases are the only definition).

use crate::RawObject;
use serde::{Deserialize, Serialize};

/// The only algorithm that receipts are signed with.
pub const ALGORITHM: &str = "ed25519";
/// The quotes that the members of `ext_attest` may name.
const QUOTES: [&str; 5] = ["none", "pqc-only", "aws-nitro-v1", "intel-tdx-v4", "amd-sev-snp-v2"];

/// A signature, and the key that verifies it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Signature {
    /// `ed25519`.
    pub algorithm: String,
    /// Base64.
    pub value: String,
    /// Which key.
    pub key_id: String,
}

/// A job's request for attestation, in its member `ext_attest`.
pub struct AttestRequest {
    /// True if it requests attestation; `None` when it does not say.
    pub enabled: Option<bool>,
    /// The requested algorithm.
    pub algorithm: Option<String>,
    /// The kind of quote that the job has.
    pub quote: String,
}

impl AttestRequest {
    /// Reads the member from a job's extension members.
    #[must_use]
    pub fn of(extra: &RawObject) -> Self {
        let requested: serde_json::Value =
            extra.given("ext_attest").and_then(|requested| requested.parse().ok()).unwrap_or_default();
        let quote = requested.pointer("/quote/type").and_then(|kind| kind.as_str());
        Self {
            enabled: requested["enabled"].as_bool(),
            algorithm: requested["algorithm"].as_str().map(str::to_owned),
            quote: quote.filter(|kind| QUOTES.contains(kind)).unwrap_or("none").to_owned(),
        }
    }
}

/// The jobs that a queue accepts (`attest_policy` of the queue's configuration).
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AttestPolicy {
    /// True if a job has to request attestation.
    pub required: bool,
    /// The algorithms that it may request; an empty list allows every one.
    pub allowed_algorithms: Vec<String>,
}

impl AttestPolicy {
    /// Checks a job's extension members against the policy.
    ///
    /// # Errors
    /// A sentence that says why the job is refused.
    pub fn check(&self, extra: &RawObject) -> Result<(), String> {
        let requested = AttestRequest::of(extra);
        if requested.enabled != Some(true) {
            return if self.required {
                Err("asks for no attestation (ext_attest.enabled)".to_owned())
            } else {
                Ok(())
            };
        }
        let algorithm = requested.algorithm.as_deref().unwrap_or(ALGORITHM);
        if self.allowed_algorithms.is_empty() || self.allowed_algorithms.iter().any(|one| one == algorithm) {
            return Ok(());
        }
        let allowed = self.allowed_algorithms.join(", ");
        Err(format!("asks for an algorithm that is not allowed (ext_attest.algorithm); allowed: {allowed}"))
    }
}
