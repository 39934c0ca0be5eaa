//! JSON that is carried as the text that was sent: numbers of any size, `1.0`, and the order of keys are preserved.
//! Members that matter to the server are parsed from it when they are needed.
//!
//! Answers are written from these texts unchanged: a `json!` around one would parse it, and fail on a number that is
//! out of range.

use crate::flaw::{Flaw, first_flaw};
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The deepest nesting that a parser of values takes.
const DEEPEST: usize = 127;

/// Parses a text in which no object has two members of one name: of such members two readers could take different
/// ones.
///
/// # Errors
/// A part of a sentence: the text is not one JSON value, or `a.b` stands twice in its object.
pub fn unambiguous(text: &str) -> Result<Value, String> {
    if let Some(Flaw::Twice { place, name }) = first_flaw(text, DEEPEST) {
        let dot = if place.is_empty() { "" } else { "." };
        return Err(format!("`{place}{dot}{name}` stands twice in its object"));
    }
    serde_json::from_str(text).map_err(|error| format!("it is not one JSON value: {error}"))
}

/// Removes one Markdown fence around a whole text, which models often add around JSON. The fence is not part of the
/// answer.
#[must_use]
pub fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(text, |inner| inner.strip_prefix("json").unwrap_or(inner).trim())
}

/// One JSON text, shared by its clones. Two are equal when their texts are.
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

/// `{}`, which most events of a phase add.
static EMPTY: LazyLock<RawJson> = LazyLock::new(|| RawJson::of(&Value::Object(Map::new())));

impl RawJson {
    fn shared(text: Box<RawValue>) -> Self {
        Self(text.into())
    }

    /// Takes a text that was not read by serde, such as a column.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn from_text(text: String) -> serde_json::Result<Self> {
        RawValue::from_string(text).map(Self::shared)
    }

    /// Returns the text of a value.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        // A `Value` has only texts for keys, so it can always be written.
        serde_json::value::to_raw_value(value).map_or_else(|_| Self::null(), Self::shared)
    }

    /// Returns the text of anything that can be written as JSON.
    ///
    /// # Errors
    /// It cannot, because a map in it has a key that is no text.
    pub fn written<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Self::shared)
    }

    /// Returns the text of a list.
    #[must_use]
    pub fn list<T: Serialize>(items: &[T]) -> Self {
        serde_json::value::to_raw_value(items).map_or_else(|_| Self::empty_array(), Self::shared)
    }

    /// `null`.
    #[must_use]
    pub fn null() -> Self {
        Self::shared(RawValue::NULL.to_owned())
    }

    /// `[]`.
    #[must_use]
    pub fn empty_array() -> Self {
        Self::of(&Value::Array(Vec::new()))
    }

    /// `{}`.
    #[must_use]
    pub fn empty_object() -> Self {
        EMPTY.clone()
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns the members of this object, followed by those of another one. A name may then occur twice.
    #[must_use]
    pub fn joined(&self, more: &Self) -> Self {
        let members = |object: &Self| {
            let inner = object.as_str().trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            inner.map_or("", str::trim).to_owned()
        };
        let parts = [members(self), members(more)];
        let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        Self::from_text(format!("{{{}}}", parts.join(","))).unwrap_or_else(|_| Self::null())
    }

    /// Returns a copy of the text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.as_str().to_owned()
    }

    /// Returns true if it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }

    /// Returns true if it is an array.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.as_str().starts_with('[')
    }

    /// Returns true if it is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// Parses the text.
    ///
    /// # Errors
    /// The text has another type, or a number in it is out of range.
    pub fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_str())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::shared)
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<T: Into<Value>> From<T> for RawJson {
    fn from(value: T) -> Self {
        Self::of(&value.into())
    }
}

/// A JSON object whose members are carried as text, in the order in which they came.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct RawObject(Vec<(Cow<'static, str>, RawJson)>);

impl RawObject {
    /// Returns an object without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same as a map of values.
    #[must_use]
    pub fn of(map: &Map<String, Value>) -> Self {
        map.iter().map(|(name, value)| (Cow::Owned(name.clone()), RawJson::of(value))).collect()
    }

    /// Returns the number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if it has no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns a member that is present and not `null`.
    #[must_use]
    pub fn given(&self, name: &str) -> Option<&RawJson> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// Returns true if it has this member.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets a member: in its place when it is there, else at the end.
    pub fn insert(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<RawJson>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Adds a member at the end unless it is there.
    pub fn insert_new(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<RawJson>) {
        let name = name.into();
        if !self.contains(&name) {
            self.0.push((name, value.into()));
        }
    }

    /// Adds members at the end, except those that are present. The time grows only with the number of members.
    pub fn extend_new(&mut self, members: impl IntoIterator<Item = (Cow<'static, str>, RawJson)>) {
        let known: HashSet<&str> = self.names().collect();
        let new: Vec<_> = members.into_iter().filter(|(name, _)| !known.contains(name.as_ref())).collect();
        self.0.extend(new);
    }

    /// Takes a member out; the others keep their order.
    pub fn remove(&mut self, name: &str) -> Option<RawJson> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// Returns the members in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// Returns the names in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_ref())
    }

    /// Returns the same as a map of values.
    ///
    /// # Errors
    /// The name of the first member in which a number is out of range, and why.
    pub fn parse(&self) -> Result<Map<String, Value>, (String, serde_json::Error)> {
        let member = |(name, value): (&str, &RawJson)| match value.parse() {
            Ok(value) => Ok((name.to_owned(), value)),
            Err(error) => Err((name.to_owned(), error)),
        };
        self.iter().map(member).collect()
    }

    /// Returns the text of the whole object.
    #[must_use]
    pub fn to_raw(&self) -> RawJson {
        // Every part of it was written or read as JSON before.
        serde_json::value::to_raw_value(self).map_or_else(|_| RawJson::null(), RawJson::shared)
    }
}

impl FromIterator<(Cow<'static, str>, RawJson)> for RawObject {
    fn from_iter<I: IntoIterator<Item = (Cow<'static, str>, RawJson)>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl IntoIterator for RawObject {
    type Item = (Cow<'static, str>, RawJson);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<RawObject> for RawJson {
    fn from(object: RawObject) -> Self {
        object.to_raw()
    }
}

impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RawObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RawObject, A::Error> {
                let mut members = Vec::with_capacity(entries.size_hint().unwrap_or(0));
                while let Some((name, value)) = entries.next_entry::<String, RawJson>()? {
                    members.push((Cow::Owned(name), value));
                }
                Ok(RawObject(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_comes_back_as_it_was() {
        let text = r#"{"z":1e400,"a":[1000000000000000000000000000000,0.1, 1.0],"m":{"b":-0.0,"a":null}}"#;
        let object: RawObject = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&object).unwrap(), text);
        assert_eq!(object.to_raw().as_str(), text);
        assert_eq!(object.names().collect::<Vec<_>>(), ["z", "a", "m"]);
        assert_eq!(object.get("a").unwrap().as_str(), "[1000000000000000000000000000000,0.1, 1.0]");
        assert_eq!(object.get("z").unwrap().parse::<Value>().unwrap().to_string(), "1e+400");
    }

    #[test]
    fn a_member_that_stands_twice_is_no_value() {
        let refused = |text: &str| unambiguous(text).unwrap_err();
        assert_eq!(refused(r#"{"a":1,"\u0061":1}"#), "`a` stands twice in its object");
        assert_eq!(refused(r#"[{"b":{"a":1,"a":2}}]"#), "`[0].b.a` stands twice in its object");
        for bad in ["", "{} {}", "{'a':1}", &"[".repeat(100_000)] {
            assert!(refused(bad).starts_with("it is not one JSON value"), "{}", &bad[..bad.len().min(9)]);
        }
        assert_eq!(unambiguous(" {\"a\": [1]} "), Ok(json!({"a": [1]})));
    }

    #[test]
    fn a_fence_is_not_part_of_the_answer() {
        assert_eq!(unfenced("```json\n{\"a\": 1}\n```"), "{\"a\": 1}");
        assert_eq!(unfenced(" {\"a\": 1} "), "{\"a\": 1}");
        assert_eq!(unfenced("Here: {\"a\": 1}"), "Here: {\"a\": 1}");
    }

    #[test]
    fn objects_are_joined_in_their_order() {
        let object = |value| RawJson::of(&value);
        let (empty, one, two) =
            (object(json!({})), object(json!({"b": 1})), object(json!({"a": "}", "c": []})));
        assert_eq!(one.joined(&two).as_str(), r#"{"b":1,"a":"}","c":[]}"#);
        assert_eq!((empty.joined(&one), one.joined(&empty)), (one.clone(), one));
        assert_eq!(empty.joined(&empty), empty);
    }

    #[test]
    fn members_keep_their_order() {
        let mut object = RawObject::of(json!({"b": 1, "a": null}).as_object().unwrap());
        object.insert("c", 3);
        object.insert("b", "two");
        object.insert_new("a", 5);
        assert_eq!(object.to_raw().as_str(), r#"{"b":"two","a":null,"c":3}"#);
        assert!(object.given("a").is_none() && object.contains("a"));
        assert_eq!(object.remove("b").unwrap().as_str(), "\"two\"");
        assert_eq!((object.len(), object.remove("b")), (2, None));
        object.extend_new(RawObject::of(json!({"d": 4, "c": 0, "b": 2}).as_object().unwrap()));
        assert_eq!(object.to_raw().as_str(), r#"{"a":null,"c":3,"d":4,"b":2}"#);
    }

    #[test]
    fn texts_that_are_not_json_are_refused() {
        for bad in ["", "{", "nul", "[1,]", "1 2"] {
            assert!(RawJson::from_text(bad.to_owned()).is_err(), "{bad}");
            assert!(serde_json::from_str::<RawJson>(bad).is_err(), "{bad}");
        }
        assert_eq!(RawJson::from_text("1e400".to_owned()).unwrap().into_text(), "1e400");
        assert_eq!((RawJson::null().as_str(), RawJson::empty_array().as_str()), ("null", "[]"));
    }
}
