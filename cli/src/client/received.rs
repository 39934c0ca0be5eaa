//! Values of answers, with the JSON in which they came.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Deref;
use turnstone_domain::RawJson;

/// A value of an answer, with its JSON. `-o json` prints the JSON, which may have members that only a newer server knows.
#[derive(Clone, PartialEq, Debug)]
pub struct Received<T> {
    value: T,
    sent: RawJson,
}

impl<T> Received<T> {
    /// Returns the value without its JSON.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for Received<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Received<T> {
    fn deserialize<D: Deserializer<'de>>(answer: D) -> Result<Self, D::Error> {
        let sent = RawJson::deserialize(answer)?;
        let value = sent.parse().map_err(D::Error::custom)?;
        Ok(Self { value, sent })
    }
}

impl<T> Serialize for Received<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.sent.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::job::sample;
    use crate::output::table::plain;
    use serde_json::{Value, json};
    use turnstone_ojs::JobBody;

    #[test]
    fn a_newer_servers_words_and_members_are_kept() {
        let mut sent = serde_json::to_value(sample(&json!({}))).unwrap();
        sent["state"] = "hibernating".into();
        sent["error"] = json!({"code": "C", "type": "t", "message": "m", "retryable": true, "details": {}, "attempt": 1,
                               "occurred_at": "", "timestamp": "", "remedy": "none"});
        let job: Received<JobBody> = serde_json::from_str(&sent.to_string()).unwrap();
        assert_eq!(
            (plain(&job.state), job.state.to_string()),
            ("hibernating".to_owned(), "hibernating".to_owned())
        );
        assert_eq!(job.state.known(), None);
        assert_eq!(serde_json::to_value::<&Received<JobBody>>(&job).unwrap(), sent);
        let refused = serde_json::from_str::<Received<JobBody>>(r#"{"state": "active"}"#).unwrap_err();
        assert!(refused.is_data() && refused.to_string().contains("missing field"), "{refused}");
        assert_eq!(
            serde_json::from_str::<Received<Value>>("[1.50]").unwrap().into_value().to_string(),
            "[1.50]"
        );
    }
}
