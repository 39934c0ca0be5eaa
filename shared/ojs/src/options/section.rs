//! An object inside of a request, whose members are read one by one; errors name the whole path.

use crate::{OjsError, read};
use serde_json::Value;
use turnstone_domain::duration::Span;
use turnstone_domain::{RawJson, RawObject};

/// The longest duration that a job may request: ten years.
const LONGEST_MS: i64 = 10 * 365 * 86_400_000;

/// The most letters by which a misspelling differs from the name that was meant.
const SLIP: usize = 2;

/// The object at `path`, which is empty for a whole body. A member that is `null` counts as not given.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) path: &'a str,
    pub(crate) members: &'a RawObject,
}

impl Section<'_> {
    /// 400: a member is wrong; `why` completes the sentence that begins with its path.
    pub(crate) fn wrong(self, name: &str, why: impl AsRef<str>) -> OjsError {
        OjsError::invalid_request(&self.path_of(name), why)
    }

    /// Returns the path of a member.
    pub(crate) fn path_of(self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(crate) fn given<T>(
        self,
        name: &str,
        reader: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, OjsError> {
        self.read(name, self.members.given(name), reader)
    }

    /// Reads a member that was taken out of the object.
    pub(crate) fn read<T>(
        self,
        name: &str,
        member: Option<&RawJson>,
        reader: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, OjsError> {
        let Some(raw) = member else { return Ok(None) };
        read::value(raw).and_then(|value| reader(&value)).map(Some).map_err(|why| self.wrong(name, why))
    }

    /// Refuses a member that is probably a misspelling of a known one. Other unknown members are kept, as OJS core asks, and
    /// extensions are never refused.
    pub(crate) fn spelled(self, known: &[&str]) -> Result<(), OjsError> {
        match self.members.names().find_map(|name| Some((name, misspelling(name, known)?))) {
            Some((name, meant)) => Err(self.wrong(name, format!("is unknown; did you mean `{meant}`?"))),
            None => Ok(()),
        }
    }

    /// Refuses any unknown member that is no extension: without it the object would mean something else.
    pub(crate) fn only(self, known: &[&str]) -> Result<(), OjsError> {
        self.spelled(known)?;
        match self.members.names().find(|name| !is_extension(name) && !known.contains(name)) {
            Some(name) => {
                let why = format!("is unknown; the members are {}", known.join(", "));
                Err(self.wrong(&read::shortened(name, 60), why))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn object(self, name: &str) -> Result<Option<RawObject>, OjsError> {
        self.members
            .given(name)
            .map(|raw| read::raw_object(raw).map_err(|why| self.wrong(name, why)))
            .transpose()
    }
}

fn is_extension(name: &str) -> bool {
    ["x_", "x-", "ext_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the known name that an unknown one probably misspells.
pub(super) fn misspelling<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if is_extension(name) || known.contains(&name) {
        return None;
    }
    known.iter().copied().find(|known| strsim::osa_distance(name, known) <= SLIP)
}

/// Reads a duration above zero, in milliseconds.
pub(crate) fn milliseconds(value: &Value) -> Result<i64, String> {
    read::integer_between(value, 1, LONGEST_MS)
}

/// Reads a duration above zero, as an ISO 8601 duration or in seconds; returns milliseconds.
pub(crate) fn duration(value: &Value) -> Result<i64, String> {
    let ms = match value {
        Value::String(text) => Span::parse(text)?.ms(),
        _ => read::integer_between(value, 1, LONGEST_MS / 1000)?.saturating_mul(1000),
    };
    match ms {
        1..=LONGEST_MS => Ok(ms),
        _ => Err("must be longer than 0 and at most ten years".to_owned()),
    }
}
