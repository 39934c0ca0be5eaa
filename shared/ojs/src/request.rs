//! Reads a request as a struct. As with [`Fields`], an error names the member, and `null` counts as not given.

use crate::read::{self, raw_kind};
use crate::{Fields, OjsError};
use serde::de::value::MapDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Error as _, Expected, IntoDeserializer, Unexpected, Visitor,
};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::{Number, Value};
use std::fmt;
use std::iter::{Enumerate, once};
use std::vec::IntoIter;
use turnstone_domain::{RawJson, RawObject};

/// The name under which `serde_json` asks for the text of a value.
const AS_TEXT: &str = "$serde_json::private::RawValue";

/// Reads a body that has to be an object. Members that the struct does not have are left alone.
///
/// # Errors
/// 400 with the member that is missing or wrong, or as for [`crate::body::read_object`].
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, OjsError> {
    Fields::read(body)?.typed()
}

/// Reads a body that may be empty, which means an object without members.
///
/// # Errors
/// As for [`read()`].
pub fn read_if_any<T: DeserializeOwned>(body: &[u8]) -> Result<T, OjsError> {
    Fields::read_if_any(body)?.typed()
}

impl Fields {
    /// Returns the members as those of a struct.
    ///
    /// # Errors
    /// 400 with the member that is missing or wrong.
    pub fn typed<T: DeserializeOwned>(self) -> Result<T, OjsError> {
        let read = T::deserialize(Sent::Object(self.0));
        read.map_err(|wrong| OjsError::invalid_request(&wrong.place, wrong.why))
    }
}

/// Reads a whole number within bounds.
///
/// # Errors
/// It is something else.
pub fn between<'de, D: Deserializer<'de>, const LEAST: i64, const MOST: i64>(
    member: D,
) -> Result<Option<i64>, D::Error> {
    optional(member, |value| read::integer_between(value, LEAST, MOST))
}

/// Reads a list of texts, none of them empty.
///
/// # Errors
/// It is something else.
pub fn texts<'de, D: Deserializer<'de>>(member: D) -> Result<Option<Vec<String>>, D::Error> {
    optional(member, read::texts)
}

/// Reads a text that is not empty.
///
/// # Errors
/// It is something else.
pub fn filled<'de, D: Deserializer<'de>>(member: D) -> Result<String, D::Error> {
    required(member, |value| read::filled_text(value).map(str::to_owned))
}

/// Reads a member as it was sent; `null` is a value.
///
/// # Errors
/// None.
pub fn sent<'de, D: Deserializer<'de>>(member: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(member).map(Some)
}

/// Reads a member whose error completes a sentence that begins with its name.
pub(crate) fn required<'de, D: Deserializer<'de>, T>(
    member: D,
    reader: impl FnOnce(&Value) -> Result<T, String>,
) -> Result<T, D::Error> {
    reader(&Value::deserialize(member)?).map_err(de::Error::custom)
}

/// Reads the same unless it is not given.
///
/// # Errors
/// `reader` refuses it.
pub fn optional<'de, D: Deserializer<'de>, T>(
    member: D,
    reader: impl FnOnce(&Value) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    let value = Option::<Value>::deserialize(member)?;
    value.map(|value| reader(&value)).transpose().map_err(de::Error::custom)
}

/// A member that is wrong, and why.
#[derive(Debug)]
struct Wrong {
    place: String,
    why: String,
}

impl Wrong {
    /// Returns the error with the place of the value that holds this one.
    fn within(self, outer: &str) -> Self {
        let joint = if self.place.is_empty() || self.place.starts_with('[') { "" } else { "." };
        Self { place: format!("{outer}{joint}{}", self.place), ..self }
    }

    fn expected(sent: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let wanted = match expected.as_str() {
            "a boolean" => "true or false",
            "a sequence" => "an array",
            "i64" => "an integer",
            map if map == "a map" || map == "a JSON object" || map.starts_with("struct ") => "an object",
            other => other,
        };
        let number = match sent {
            Unexpected::Float(number) => Number::from_f64(number),
            Unexpected::Unsigned(number) => Some(number.into()),
            _ => None,
        };
        Self::custom(match (number, sent) {
            (Some(number), _) if wanted == "an integer" => {
                format!("must be a whole number of at most 64 bits, not {number}")
            }
            (_, Unexpected::Bool(_)) => format!("must be {wanted}, not a boolean"),
            (_, Unexpected::Str(_)) => format!("must be {wanted}, not a string"),
            (_, Unexpected::Seq) => format!("must be {wanted}, not an array"),
            (_, Unexpected::Map) => format!("must be {wanted}, not an object"),
            (_, Unexpected::Unit) => format!("must be {wanted}, not null"),
            _ => format!("must be {wanted}, not a number"),
        })
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.place, self.why)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self { place: String::new(), why: why.to_string() }
    }

    fn invalid_type(sent: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(sent, expected)
    }

    fn invalid_value(sent: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(sent, expected)
    }

    fn missing_field(name: &'static str) -> Self {
        Self::custom("is missing").within(name)
    }
}

/// The body, or a value in it.
enum Sent {
    Object(RawObject),
    Member(RawJson),
    Item(RawJson),
}

impl Sent {
    fn into_object(self) -> Result<RawObject, Wrong> {
        match self {
            Self::Object(object) => Ok(object),
            Self::Member(raw) if raw.is_null() => Err(de::Error::custom("is missing")),
            Self::Member(raw) | Self::Item(raw) if raw.is_object() => raw.parse().map_err(de::Error::custom),
            Self::Member(raw) | Self::Item(raw) => {
                Err(de::Error::custom(format!("must be an object, not {}", raw_kind(&raw))))
            }
        }
    }
}

impl<'de> Deserializer<'de> for Sent {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let (raw, is_item) = match self {
            Self::Object(object) => return visitor.visit_map(Members::all(&object)),
            Self::Member(raw) => (raw, false),
            Self::Item(raw) => (raw, true),
        };
        if raw.is_object() {
            return visitor.visit_map(Members::all(&Self::Member(raw).into_object()?));
        }
        if raw.is_array() {
            let items: Vec<RawJson> = raw.parse().map_err(Wrong::custom)?;
            return visitor.visit_seq(Items(items.into_iter().enumerate()));
        }
        match read::value(&raw).map_err(Wrong::custom)? {
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::String(text) => visitor.visit_string(text),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => visitor.visit_i64(number),
                (None, Some(number)) => visitor.visit_u64(number),
                (None, None) => match number.as_f64() {
                    Some(float) => visitor.visit_f64(float),
                    None => Err(Wrong::custom("holds a number that is out of range")),
                },
            },
            _ if is_item => visitor.visit_unit(),
            _ => Err(Wrong::custom("is missing")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            Self::Member(raw) | Self::Item(raw) if raw.is_null() => visitor.visit_none(),
            given => visitor.visit_some(given),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self {
            Self::Member(raw) | Self::Item(raw) if name == AS_TEXT => {
                visitor.visit_map(MapDeserializer::new(once((AS_TEXT, raw.into_text()))))
            }
            other => visitor.visit_newtype_struct(other),
        }
    }

    /// The members are read in the order of the struct, whatever the order in which they were sent.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let object = self.into_object()?;
        let members = names.iter().filter_map(|name| Some(((*name).to_owned(), object.get(name)?.clone())));
        let members: Vec<_> = members.collect();
        visitor.visit_map(Members { rest: members.into_iter(), value: None, of_struct: true })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_map(Members::all(&self.into_object()?))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct enum identifier
    }
}

/// The members of an object.
struct Members {
    rest: IntoIter<(String, RawJson)>,
    value: Option<(String, RawJson)>,
    /// True if a member that is `null` is missing. In a free-form object `null` is a value like others.
    of_struct: bool,
}

impl Members {
    fn all(object: &RawObject) -> Self {
        let members: Vec<_> = object.iter().map(|(name, raw)| (name.to_owned(), raw.clone())).collect();
        Self { rest: members.into_iter(), value: None, of_struct: false }
    }
}

impl<'de> de::MapAccess<'de> for Members {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        self.value = self.rest.next();
        let Some((name, _)) = &self.value else { return Ok(None) };
        seed.deserialize(name.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let (name, raw) = self.value.take().ok_or_else(|| Wrong::custom("has no value"))?;
        let sent = if self.of_struct { Sent::Member(raw) } else { Sent::Item(raw) };
        seed.deserialize(sent).map_err(|wrong| wrong.within(&name))
    }
}

/// The items of a list.
struct Items(Enumerate<IntoIter<RawJson>>);

impl<'de> de::SeqAccess<'de> for Items {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Some((at, raw)) = self.0.next() else { return Ok(None) };
        seed.deserialize(Sent::Item(raw)).map(Some).map_err(|wrong| wrong.within(&format!("[{at}]")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Deserialize, PartialEq, Debug)]
    struct Nested {
        flag: Option<bool>,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    struct Outer {
        #[serde(deserialize_with = "filled")]
        name: String,
        raw: RawJson,
        #[serde(default, deserialize_with = "between::<_, 0, 5>")]
        count: Option<i64>,
        whole: Option<i64>,
        text: Option<String>,
        notes: Option<RawObject>,
        inner: Option<Nested>,
        list: Option<Vec<Nested>>,
        #[serde(default, deserialize_with = "texts")]
        words: Option<Vec<String>>,
    }

    #[test]
    fn members_are_read_and_null_is_not_given() {
        let body = br#"{"raw":null,"name":"x","count":5,"text":null,"notes":{"k":1e400},"inner":{"flag":true,"more":1}}"#;
        let read: Outer = read(body).unwrap();
        assert_eq!(
            (read.name.as_str(), read.raw.is_null(), read.count, read.text),
            ("x", true, Some(5), None)
        );
        assert_eq!(read.notes.unwrap().get("k").unwrap().as_str(), "1e400");
        assert_eq!((read.inner, read.list), (Some(Nested { flag: Some(true) }), None));
        assert_eq!(read_if_any::<Nested>(b" "), Ok(Nested { flag: None }));
    }

    #[test]
    fn null_within_a_free_form_member_is_a_value() {
        #[derive(Deserialize)]
        struct Free {
            details: Option<Value>,
            weights: BTreeMap<String, Option<i64>>,
        }
        let sent = br#"{"details":{"line":null,"at":[{"x":null}]},"weights":{"a":null,"b":2}}"#;
        let read: Free = read(sent).unwrap();
        assert_eq!(read.details.unwrap().to_string(), r#"{"line":null,"at":[{"x":null}]}"#);
        assert_eq!(read.weights, BTreeMap::from([("a".to_owned(), None), ("b".to_owned(), Some(2))]));
    }

    #[test]
    fn wrong_members_are_named_in_plain_words() {
        for (member, message, field) in [
            (r#""name":"""#, "name must not be empty", "name"),
            (r#""name":null"#, "name is missing", "name"),
            (r#""name":1"#, "name must be a string, not a number", "name"),
            (r#""count":6"#, "count must be at most 5, not 6", "count"),
            (r#""count":1e400"#, "count holds a number that is out of range", "count"),
            (r#""whole":1.0"#, "whole must be a whole number of at most 64 bits, not 1.0", "whole"),
            (r#""whole":[]"#, "whole must be an integer, not an array", "whole"),
            (r#""text":{}"#, "text must be a string, not an object", "text"),
            (r#""notes":true"#, "notes must be an object, not a boolean", "notes"),
            (r#""inner":[]"#, "inner must be an object, not an array", "inner"),
            (r#""inner":{"flag":"y"}"#, "inner.flag must be true or false, not a string", "inner.flag"),
            (r#""list":7"#, "list must be an array, not a number", "list"),
            (r#""list":[{},3]"#, "list[1] must be an object, not a number", "list[1]"),
            (r#""words":["a",null]"#, "words [1] must be a string, not null", "words"),
        ] {
            let rest = if member.starts_with("\"name") { "" } else { r#","name":"x""# };
            let error = read::<Outer>(format!(r#"{{"raw":1,{member}{rest}}}"#).as_bytes()).unwrap_err();
            assert_eq!((error.message.as_str(), error.details["field"].as_str()), (message, Some(field)));
        }
        assert_eq!(read::<Outer>(b"{\"name\":\"x\"}").unwrap_err().message, "raw is missing");
    }
}
