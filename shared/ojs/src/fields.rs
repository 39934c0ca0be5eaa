//! The members of a request body as they were sent; [`crate::request`] reads them as a struct.

use crate::{OjsError, body, read};
use turnstone_domain::{RawJson, RawObject};

/// A JSON object that a client sent. A member that is `null` counts as not given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fields(pub RawObject);

impl Fields {
    /// Reads a body that has to be an object.
    ///
    /// # Errors
    /// See [`body::read_object`].
    pub fn read(bytes: &[u8]) -> Result<Self, OjsError> {
        body::read_object(bytes).map(Self)
    }

    /// Reads a body that may be empty, which means an object without members.
    ///
    /// # Errors
    /// See [`body::read_object`].
    pub fn read_if_any(bytes: &[u8]) -> Result<Self, OjsError> {
        if bytes.iter().all(u8::is_ascii_whitespace) { Ok(Self::default()) } else { Self::read(bytes) }
    }

    /// Reads an object.
    ///
    /// # Errors
    /// 400 when it is something else.
    pub fn object(&self, name: &str) -> Result<Option<RawObject>, OjsError> {
        let read = self.0.given(name).map(read::raw_object).transpose();
        read.map_err(|why| OjsError::invalid_request(name, why))
    }

    /// Returns a member as the text that was sent; `null` is a value here.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&RawJson> {
        self.0.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_and_null_is_not_given() {
        let sent = Fields::read(br#"{"o":{"k":1e400},"l":[],"z":null}"#).unwrap();
        assert_eq!(sent.object("o").unwrap().unwrap().get("k").unwrap().as_str(), "1e400");
        assert_eq!((sent.object("z"), sent.object("none")), (Ok(None), Ok(None)));
        assert!(sent.raw("z").is_some_and(RawJson::is_null));
        let refused = sent.object("l").unwrap_err();
        assert_eq!((refused.status, refused.details["field"].as_str()), (400, Some("l")));
        assert_eq!(Fields::read_if_any(b" "), Ok(Fields::default()));
    }
}
