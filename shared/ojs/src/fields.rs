//! The members of a request body, read one by one; errors name the member.

use crate::{OjsError, body, read};
use serde_json::Value;
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

    /// Reads a text.
    ///
    /// # Errors
    /// 400 when it is something else.
    pub fn text(&self, name: &str) -> Result<Option<String>, OjsError> {
        self.given(name, |value| read::text(value).map(str::to_owned))
    }

    /// Reads a text that is required and not empty.
    ///
    /// # Errors
    /// 400 when it is not.
    pub fn required_text(&self, name: &str) -> Result<String, OjsError> {
        self.required(name, |value| read::filled_text(value).map(str::to_owned))
    }

    /// Reads a whole number within bounds.
    ///
    /// # Errors
    /// 400 when it is something else.
    pub fn integer(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>, OjsError> {
        self.given(name, |value| read::integer_between(value, least, most))
    }

    /// Reads true or false.
    ///
    /// # Errors
    /// 400 when it is something else.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, OjsError> {
        self.given(name, |value| {
            value.as_bool().ok_or_else(|| format!("must be true or false, not {}", read::kind(value)))
        })
    }

    /// Reads a list of texts, none of them empty.
    ///
    /// # Errors
    /// 400 when it is something else.
    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>, OjsError> {
        self.given(name, read::texts)
    }

    /// Reads an object.
    ///
    /// # Errors
    /// 400 when it is something else.
    pub fn object(&self, name: &str) -> Result<Option<RawObject>, OjsError> {
        let Some(value) = self.0.given(name) else { return Ok(None) };
        let wrong =
            || OjsError::invalid_request(name, format!("must be an object, not {}", read::raw_kind(value)));
        if value.is_object() { value.parse().map(Some).map_err(|_| wrong()) } else { Err(wrong()) }
    }

    /// Reads a list of objects.
    ///
    /// # Errors
    /// 400 when it is something else.
    pub fn objects(&self, name: &str) -> Result<Option<Vec<RawObject>>, OjsError> {
        let Some(value) = self.0.given(name) else { return Ok(None) };
        let items: Vec<RawJson> = value.parse().map_err(|_| {
            OjsError::invalid_request(name, format!("must be an array, not {}", read::raw_kind(value)))
        })?;
        let object = |(at, item): (usize, RawJson)| {
            item.parse().map_err(|_| {
                let why = format!("must be an object, not {}", read::raw_kind(&item));
                OjsError::invalid_request(&format!("{name}[{at}]"), why)
            })
        };
        items.into_iter().enumerate().map(object).collect::<Result<_, _>>().map(Some)
    }

    /// Returns a member as the text that was sent; `null` is a value here.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&RawJson> {
        self.0.get(name)
    }

    /// Returns a member that is present and not `null`. The error of `reader` completes a sentence that begins with the
    /// member's name.
    ///
    /// # Errors
    /// 400 when the reader refuses it, or a number in it is out of range.
    pub fn given<T>(
        &self,
        name: &str,
        reader: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, OjsError> {
        let Some(raw) = self.0.given(name) else { return Ok(None) };
        read::value(raw)
            .and_then(|value| reader(&value))
            .map(Some)
            .map_err(|why| OjsError::invalid_request(name, why))
    }

    /// Returns the same for a member that has to be there.
    ///
    /// # Errors
    /// 400 when it is missing or `null`, or as for [`Self::given`].
    pub fn required<T>(
        &self,
        name: &str,
        reader: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<T, OjsError> {
        self.given(name, reader)?.ok_or_else(|| OjsError::invalid_request(name, "is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        Fields::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn members_are_read_and_null_is_not_given() {
        let sent = fields(r#"{"a":"x","n":3,"f":true,"l":["x"],"o":{"k":1e400},"m":[{},{"a":1}],"z":null}"#);
        assert_eq!(sent.text("a").unwrap().as_deref(), Some("x"));
        assert_eq!((sent.integer("n", 0, 5), sent.flag("f")), (Ok(Some(3)), Ok(Some(true))));
        assert_eq!(sent.texts("l"), Ok(Some(vec!["x".to_owned()])));
        assert_eq!(sent.object("o").unwrap().unwrap().get("k").unwrap().as_str(), "1e400");
        assert_eq!(sent.objects("m").unwrap().unwrap().len(), 2);
        assert_eq!((sent.text("z"), sent.objects("z"), sent.text("none")), (Ok(None), Ok(None), Ok(None)));
        assert!(sent.raw("z").is_some_and(RawJson::is_null));
        assert_eq!(Fields::read_if_any(b" "), Ok(Fields::default()));
    }

    #[test]
    fn wrong_members_are_named() {
        let sent = fields(r#"{"a":1,"e":"","n":9,"big":1e400,"f":"yes","l":[1],"o":[],"m":[1],"z":null}"#);
        for (error, field) in [
            (sent.text("a").unwrap_err(), "a"),
            (sent.required_text("e").unwrap_err(), "e"),
            (sent.required_text("z").unwrap_err(), "z"),
            (sent.required_text("none").unwrap_err(), "none"),
            (sent.integer("n", 0, 5).unwrap_err(), "n"),
            (sent.integer("big", 0, 5).unwrap_err(), "big"),
            (sent.flag("f").unwrap_err(), "f"),
            (sent.texts("l").unwrap_err(), "l"),
            (sent.object("o").unwrap_err(), "o"),
            (sent.objects("m").unwrap_err(), "m[0]"),
            (sent.objects("a").unwrap_err(), "a"),
        ] {
            assert_eq!((error.status, error.details["field"].as_str()), (400, Some(field)), "{error}");
        }
    }
}
