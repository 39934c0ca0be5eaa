//! Receipts of accepted jobs, signed with ed25519 (OJS attest; the published cases are the only definition).
//!
//! The signed text has lines `name=value`, each ended by a line feed, in this order and in UTF-8:
//!
//! ```text
//! turnstone-receipt-v1
//! version=1
//! job_id=…
//! job_type=…
//! issued_at=…            RFC 3339, UTC: when the job was accepted
//! args_sha256=…          lower-case hex SHA-256 of `args` as the JSON text that the server gives back
//! quote_type=…
//! quote_issued_at=…
//! algorithm=ed25519
//! key_id=…
//! ```
//!
//! `signature.value` is the signature of that text in base64, `key_id` the first 16 hex digits of the SHA-256 of the
//! public key. So a receipt is verified with any ed25519 library and a public key of `GET /ojs/v1/attest/keys`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::rand::SecureRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use turnstone_domain::{Job, digest};
use utoipa::ToSchema;

pub use turnstone_domain::attest::{ALGORITHM, AttestRequest, Signature};

/// The version of the receipts' shape.
const VERSION: &str = "1";

/// A receipt. docs/OJS.md describes the signed text and the signature.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// The version of this shape.
    #[schema(example = "1")]
    pub version: String,
    /// The job.
    pub job_id: String,
    /// Its type.
    pub job_type: String,
    /// When the job was accepted: RFC 3339, UTC.
    pub issued_at: String,
    /// Lower-case hex SHA-256 of the job's `args`, as the JSON text that the server returns.
    pub args_sha256: String,
    /// The quote of the machine that the job runs on.
    pub quote: Quote,
    /// Over all of the above.
    #[schema(value_type = SignatureShape)]
    pub signature: Signature,
}

/// A signature.
#[derive(ToSchema)]
#[schema(as = Signature)]
#[expect(dead_code, reason = "the domain's own type is serialised")]
struct SignatureShape {
    #[schema(example = "ed25519")]
    algorithm: String,
    /// Base64.
    value: String,
    key_id: String,
}

/// The quote of the machine that a job runs on. It is the job's own claim, because this server takes no quotes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Quote {
    /// `none`, or the kind that the job names in `ext_attest.quote.type`.
    #[serde(rename = "type")]
    #[schema(example = "none")]
    pub kind: String,
    /// When it was taken.
    pub issued_at: String,
}

impl Receipt {
    /// Returns the text that is signed; `None` when a member holds a control character, which could forge a line.
    fn text(&self) -> Option<String> {
        let lines = [
            ("version", &self.version),
            ("job_id", &self.job_id),
            ("job_type", &self.job_type),
            ("issued_at", &self.issued_at),
            ("args_sha256", &self.args_sha256),
            ("quote_type", &self.quote.kind),
            ("quote_issued_at", &self.quote.issued_at),
            ("algorithm", &self.signature.algorithm),
            ("key_id", &self.signature.key_id),
        ];
        let mut text = String::from("turnstone-receipt-v1\n");
        for (name, value) in lines {
            if value.contains(char::is_control) {
                return None;
            }
            text.push_str(&format!("{name}={value}\n"));
        }
        Some(text)
    }
}

/// A key that signs.
#[derive(Clone)]
pub struct Signer {
    pair: Arc<Ed25519KeyPair>,
    key: PublicKey,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.key.id)
    }
}

/// A key that verifies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicKey {
    /// The first 16 hex digits of its SHA-256.
    pub id: String,
    /// Its 32 bytes in base64.
    pub value: String,
}

impl PublicKey {
    /// Takes 32 bytes in base64.
    ///
    /// # Errors
    /// A sentence, when they are something else.
    pub fn read(value: &str) -> Result<Self, String> {
        let bytes = thirty_two(value)?;
        Ok(Self { id: digest::of_bytes(&bytes)[..16].to_owned(), value: BASE64_STANDARD.encode(bytes) })
    }

    /// Checks that a signature is one of this key for this text.
    ///
    /// # Errors
    /// It does not hold.
    pub fn verify(&self, text: &str, signature: &Signature) -> Result<(), BadSignature> {
        let bytes = |text: &str, what| BASE64_STANDARD.decode(text).map_err(|_| BadSignature::Encoding(what));
        let (value, key) =
            (bytes(&signature.value, "signature.value")?, bytes(&self.value, "the server's key")?);
        UnparsedPublicKey::new(&ED25519, key).verify(text.as_bytes(), &value).map_err(|_| BadSignature::Other)
    }
}

/// Returns a new seed for [`Signer::from_seed`]: 32 random bytes in base64.
///
/// # Errors
/// A sentence, when there is no randomness to be had.
pub fn new_seed(random: &dyn SecureRandom) -> Result<String, String> {
    let mut seed = [0; 32];
    random.fill(&mut seed).map_err(|_| "the system gives no random bytes".to_owned())?;
    Ok(BASE64_STANDARD.encode(seed))
}

impl Signer {
    /// Returns the key of a seed: 32 bytes in base64.
    ///
    /// # Errors
    /// A sentence that does not repeat the seed.
    pub fn from_seed(seed: &str) -> Result<Self, String> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&thirty_two(seed)?)
            .map_err(|_| "is not the seed of an ed25519 key".to_owned())?;
        let key = PublicKey::read(&BASE64_STANDARD.encode(pair.public_key().as_ref()))?;
        Ok(Self { pair: Arc::new(pair), key })
    }

    /// Returns the key that verifies what this one signs.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.key
    }

    /// Returns the signature of a text.
    #[must_use]
    pub fn sign(&self, text: &str) -> Signature {
        let value = BASE64_STANDARD.encode(self.pair.sign(text.as_bytes()));
        Signature { algorithm: ALGORITHM.to_owned(), value, key_id: self.key.id.clone() }
    }

    /// Returns the receipt of a job. The same job has the same receipt at any time.
    #[must_use]
    pub fn receipt(&self, job: &Job) -> Receipt {
        let issued_at = job.created_at.to_rfc3339();
        let mut receipt = Receipt {
            version: VERSION.to_owned(),
            job_id: job.id.to_string(),
            job_type: job.job_type.clone(),
            issued_at: issued_at.clone(),
            args_sha256: digest::of_text(job.envelope.args.as_str()),
            quote: Quote { kind: AttestRequest::of(&job.envelope.extra).quote, issued_at },
            signature: Signature {
                algorithm: ALGORITHM.to_owned(),
                value: String::new(),
                key_id: self.key.id.clone(),
            },
        };
        let text = receipt.text().unwrap_or_default();
        receipt.signature = self.sign(&text);
        receipt
    }
}

/// Checks a receipt: the key of its id among `keys` has to have signed exactly its text.
///
/// # Errors
/// A sentence that says why it is not valid.
pub fn verify(receipt: &Receipt, keys: &[PublicKey]) -> Result<(), String> {
    if receipt.version != VERSION {
        return Err(format!("receipts of version {VERSION} are known here, and not of others"));
    }
    let signature = &receipt.signature;
    if signature.algorithm != ALGORITHM {
        return Err(format!("receipts are signed with {ALGORITHM} here, and with nothing else"));
    }
    let Some(key) = keys.iter().find(|key| key.id == signature.key_id) else {
        return Err("no key of this server has this key_id".to_owned());
    };
    let text = receipt.text().ok_or("a member holds a control character")?;
    key.verify(&text, signature).map_err(|why| match why {
        BadSignature::Encoding(what) => format!("{what} is not base64"),
        BadSignature::Other => "the signature is not that of what the receipt says".to_owned(),
    })
}

/// A signature that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadSignature {
    /// This is not base64.
    Encoding(&'static str),
    /// It is the signature of another text, or of another key.
    Other,
}

fn thirty_two(text: &str) -> Result<[u8; 32], String> {
    let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|_| "is not base64".to_owned())?;
    <[u8; 32]>::try_from(bytes).map_err(|bytes| format!("has {} bytes and not 32", bytes.len()))
}
