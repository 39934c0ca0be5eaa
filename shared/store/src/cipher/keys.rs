//! The keys of the configuration.

use super::key::{SECRET_LEN, SealingKey};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

/// How many bytes of a digest name a key.
const NAME_LEN: usize = 6;

/// The keys that data keys are sealed with: one that seals, and older or coming ones that only open.
#[derive(Clone)]
pub struct EncryptionKeys {
    current: Arc<SealingKey>,
    others: Vec<Arc<SealingKey>>,
}

impl EncryptionKeys {
    /// Keys as they are configured: 32 random bytes each, in base64.
    ///
    /// # Errors
    /// A sentence that says what is wrong with which of them, without repeating it.
    pub fn new<T: AsRef<str>>(key: &str, previous: &[T]) -> Result<Self, String> {
        let current = read(key).map_err(|why| format!("`key` {why}"))?;
        let others = previous.iter().enumerate().map(|(at, text)| {
            read(text.as_ref()).map_err(|why| format!("`previous`, number {}, {why}", at + 1))
        });
        Ok(Self {
            current: Arc::new(current),
            others: others.map(|key| key.map(Arc::new)).collect::<Result<_, _>>()?,
        })
    }

    /// The name of the key that seals; not secret.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.current.id
    }

    /// The names of all keys, the one that seals first.
    #[must_use]
    pub fn ids(&self) -> Vec<&str> {
        self.all().map(|key| key.id.as_str()).collect()
    }

    pub(super) fn current(&self) -> &SealingKey {
        &self.current
    }

    /// The key of this name.
    pub(super) fn find(&self, id: &str) -> Option<&SealingKey> {
        self.all().find(|key| key.id == id)
    }

    fn all(&self) -> impl Iterator<Item = &SealingKey> {
        std::iter::once(&self.current).chain(&self.others).map(|key| &**key)
    }
}

impl PartialEq for EncryptionKeys {
    fn eq(&self, other: &Self) -> bool {
        self.ids() == other.ids()
    }
}

impl Eq for EncryptionKeys {}

impl fmt::Debug for EncryptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EncryptionKeys").field(&self.ids()).finish()
    }
}

fn read(text: &str) -> Result<SealingKey, String> {
    let bytes = BASE64_STANDARD.decode(text.trim()).ok();
    let secret: Option<[u8; SECRET_LEN]> = bytes.and_then(|bytes| bytes.try_into().ok());
    match secret {
        Some(secret) => Ok(SealingKey::new(name(&secret), &secret)),
        None => Err(format!(
            "is not {SECRET_LEN} bytes in base64; `openssl rand -base64 {SECRET_LEN}` makes a key"
        )),
    }
}

/// A name that says which key it is and nothing about it.
fn name(secret: &[u8]) -> String {
    let named = digest(&SHA256, &[b"turnstone key name\n", secret].concat());
    named.as_ref().iter().take(NAME_LEN).fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_names_and_show_nothing_else() {
        let (one, two) = (BASE64_STANDARD.encode([1; 32]), BASE64_STANDARD.encode([2; 32]));
        let keys = EncryptionKeys::new(&format!("{one}\n"), &[&two]).unwrap();
        assert_eq!(keys.id().len(), 12);
        assert_ne!(keys.ids()[0], keys.ids()[1]);
        assert_eq!(format!("{keys:?}"), format!("EncryptionKeys({:?})", keys.ids()));
        assert_ne!(keys, EncryptionKeys::new(&two, &[&one]).unwrap());
    }

    #[test]
    fn what_is_no_key_is_named_and_not_repeated() {
        let good = BASE64_STANDARD.encode([1; 32]);
        for bad in ["", "password-of-mine", &BASE64_STANDARD.encode([1; 16])] {
            let why = EncryptionKeys::new(bad, &[] as &[&str]).unwrap_err();
            assert!(why.contains("`key` is not 32 bytes") && why.contains("openssl rand"), "{why}");
            assert!(bad.is_empty() || !why.contains(bad), "{why}");
            let why = EncryptionKeys::new(&good, &[good.as_str(), bad]).unwrap_err();
            assert!(why.contains("`previous`, number 2"), "{why}");
        }
    }
}
