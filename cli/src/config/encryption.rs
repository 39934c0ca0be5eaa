//! `[encryption]`: the keys that encrypt the stored data.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use turnstone_store::EncryptionKeys;
use turnstone_telemetry::SecretRef;

/// `[encryption]`: the keys that encrypt the stored data. All processes of a fleet need the same.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EncryptionConfig {
    /// Reference to the key: 32 bytes in base64. Without it nothing is encrypted.
    pub key: Option<SecretRef>,
    /// References to older keys, which still decrypt until all data is encrypted with the current one; also to the next
    /// key, before it becomes the current one.
    pub previous: Vec<SecretRef>,
}

impl EncryptionConfig {
    /// Returns the keys; `None` when nothing is to be encrypted.
    ///
    /// # Errors
    /// A reference cannot be resolved, or its value is no key.
    pub fn keys(&self) -> Result<Option<EncryptionKeys>, Failure> {
        let Some(key) = &self.key else {
            return match self.previous.is_empty() {
                true => Ok(None),
                false => Err(Failure::usage(
                    "`encryption.previous` names keys, and `encryption.key` names none",
                )
                .hint(
                    "what was encrypted cannot be written in the clear again: give the current key as `key`",
                )),
            };
        };
        let fetched = |name: &str, reference: &SecretRef| {
            reference.resolve().map_err(|problem| Failure::usage(format!("`encryption.{name}`: {problem}")))
        };
        let current = fetched("key", key)?;
        let previous = self.previous.iter().map(|reference| fetched("previous", reference));
        let previous = previous.collect::<Result<Vec<_>, _>>()?;
        let texts: Vec<&str> = previous.iter().map(|secret| secret.expose()).collect();
        let keys = EncryptionKeys::new(current.expose(), &texts);
        keys.map(Some).map_err(|why| Failure::usage(format!("[encryption]: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the keys of a configuration that names these in files.
    fn keys(key: Option<&str>, previous: &[&str]) -> Result<Option<EncryptionKeys>, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let kept = |(at, text): (usize, &str)| {
            let path = folder.path().join(at.to_string());
            std::fs::write(&path, text).unwrap();
            SecretRef::File(path)
        };
        let previous = previous.iter().copied().enumerate().map(kept).collect();
        EncryptionConfig { key: key.map(|text| kept((99, text))), previous }.keys()
    }

    #[test]
    fn a_key_is_fetched_and_checked() {
        let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
        assert_eq!(keys(None, &[]), Ok(None));
        assert_eq!(keys(Some(key), &[key]).unwrap().unwrap().ids().len(), 2);
        for (keys, words) in [
            (keys(None, &[key]), "`encryption.key` names none"),
            (keys(Some("c2hvcnQ="), &[]), "`key` is not 32 bytes"),
            (keys(Some(key), &["c2hvcnQ="]), "`previous`, number 1"),
        ] {
            let failure = keys.unwrap_err();
            assert!(failure.message.contains(words), "{failure}");
            assert!(!failure.message.contains("c2hvcnQ"), "{failure}");
        }
        let nowhere = EncryptionConfig { key: Some(SecretRef::Env("NO_SUCH_KEY".into())), previous: vec![] };
        assert!(nowhere.keys().unwrap_err().message.contains("`encryption.key`: the environment variable"));
    }
}
