//! One key: it seals a text for one place, and opens it there and nowhere else.
//!
//! AES-256-GCM under a key of its own for every value: HKDF-SHA256 makes it of this key and 12 random bytes, and 12 more
//! are the nonce. So no number of values under one key brings two of them near to the same nonce. What is authenticated
//! beside the text is its place. A sealed text is `sealed:1:<key>:<base64url of salt, nonce, ciphertext and tag>`.

use crate::StoreError;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::rand::SecureRandom;
use std::fmt;

/// The prefix of a sealed text, with which no JSON text begins. `select_directives_by_job.sql` has it, too.
pub(super) const MARK: &str = "sealed:1:";
/// The length of a key in bytes.
pub(super) const SECRET_LEN: usize = 32;
/// The random bytes that the key of one value is made of.
const SALT_LEN: usize = 12;
/// The purpose that each key is derived for. The same bytes, used for another purpose, give another key.
const PURPOSE: &[u8] = b"turnstone encryption at rest 1";

/// The place of a value.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub table: &'static str,
    pub column: &'static str,
    /// The key of the row within its table.
    pub row: &'a str,
}

impl Place<'_> {
    fn authenticated(self) -> String {
        format!("{}\n{}\n{}", self.table, self.column, self.row)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}, row {}", self.table, self.column, self.row)
    }
}

/// A sealed text, taken apart.
#[derive(Clone, Copy)]
pub(super) struct Sealed<'a> {
    /// The key that it was sealed with.
    pub key: &'a str,
    body: &'a str,
}

impl<'a> Sealed<'a> {
    /// The text, if it is a sealed one.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix(MARK)?;
        let (key, body) = rest.split_once(':').unwrap_or((rest, ""));
        Some(Self { key, body })
    }
}

/// See the module.
pub(super) struct SealingKey {
    /// Its name; not secret.
    pub id: String,
    root: Prk,
}

impl SealingKey {
    /// A key of this name.
    pub(super) fn new(id: String, secret: &[u8; SECRET_LEN]) -> Self {
        Self { id, root: Salt::new(HKDF_SHA256, PURPOSE).extract(secret) }
    }

    fn of_value(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let info = [salt];
        let made = self.root.expand(&info, &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(made)))
    }

    /// Seals a text for a place.
    pub(super) fn seal(
        &self,
        random: &dyn SecureRandom,
        clear: &str,
        place: Place<'_>,
    ) -> Result<String, StoreError> {
        let body = self.sealed(random, clear, place).ok_or_else(|| StoreError::Database {
            action: "seal a value",
            message: "the system gives no random bytes".to_owned(),
        })?;
        let mut text = format!("{MARK}{}:", self.id);
        BASE64_URL_SAFE_NO_PAD.encode_string(body, &mut text);
        Ok(text)
    }

    fn sealed(&self, random: &dyn SecureRandom, clear: &str, place: Place<'_>) -> Option<Vec<u8>> {
        let mut chance = [0; SALT_LEN + NONCE_LEN];
        random.fill(&mut chance).ok()?;
        let (salt, nonce) = chance.split_at(SALT_LEN);
        let mut body = Vec::with_capacity(chance.len() + clear.len() + AES_256_GCM.tag_len());
        body.extend_from_slice(&chance);
        body.extend_from_slice(clear.as_bytes());
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let beside = Aad::from(place.authenticated());
        let key = self.of_value(salt)?;
        let tag = key.seal_in_place_separate_tag(nonce, beside, body.get_mut(chance.len()..)?).ok()?;
        body.extend_from_slice(tag.as_ref());
        Some(body)
    }

    /// Opens a text that was sealed with this key for this place; `None` when it was not, or was changed since.
    pub(super) fn open(&self, sealed: Sealed<'_>, place: Place<'_>) -> Option<String> {
        let mut body = BASE64_URL_SAFE_NO_PAD.decode(sealed.body).ok()?;
        let (chance, text) = body.split_at_mut_checked(SALT_LEN + NONCE_LEN)?;
        let (salt, nonce) = chance.split_at(SALT_LEN);
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened =
            self.of_value(salt)?.open_in_place(nonce, Aad::from(place.authenticated()), text).ok()?;
        String::from_utf8(opened.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;

    const HERE: Place<'_> = Place { table: "job_results", column: "result", row: "17" };

    fn key(byte: u8) -> SealingKey {
        SealingKey::new(format!("k{byte}"), &[byte; SECRET_LEN])
    }

    fn sealed(clear: &str) -> String {
        key(1).seal(&SystemRandom::new(), clear, HERE).unwrap()
    }

    fn opened(text: &str, by: &SealingKey, place: Place<'_>) -> Option<String> {
        by.open(Sealed::read(text).unwrap(), place)
    }

    #[test]
    fn a_text_is_opened_where_it_was_sealed() {
        for clear in ["", "{\"a\":0.10}", "größer \u{1f980}"] {
            let text = sealed(clear);
            assert!(text.starts_with("sealed:1:k1:") && text.is_ascii(), "{text}");
            assert!(clear.is_empty() || !text.contains(clear));
            assert_eq!(opened(&text, &key(1), HERE).as_deref(), Some(clear));
        }
        assert_ne!(sealed("x"), sealed("x"), "equal texts look equal");
    }

    #[test]
    fn nowhere_else_and_with_no_other_key() {
        let text = sealed("secret");
        assert_eq!(opened(&text, &key(2), HERE), None);
        let elsewhere = [
            Place { table: "job_errors", ..HERE },
            Place { column: "error", ..HERE },
            Place { row: "18", ..HERE },
        ];
        assert!(elsewhere.iter().all(|place| opened(&text, &key(1), *place).is_none()));
    }

    #[test]
    fn a_change_anywhere_is_noticed() {
        let text = sealed("secret");
        let begin = "sealed:1:k1:".len();
        for at in begin..text.len() - 1 {
            let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
            let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            assert_eq!(opened(&changed, &key(1), HERE), None, "at {at}");
        }
        for short in [&text[..begin], &text[..begin + 20], &text[..text.len() - 4]] {
            assert_eq!(opened(short, &key(1), HERE), None);
        }
        assert_eq!(opened("sealed:1:", &key(1), HERE), None);
        assert!(Sealed::read("{\"sealed:1:\":1}").is_none());
    }
}
