//! URLs with `{name}` in their path, filled from a call's arguments.

use serde_json::{Map, Value};
use std::fmt::Write as _;
use url::Url;

/// A URL whose path may hold placeholders. Scheme, host and query are fixed: no argument can change them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UrlTemplate {
    base: Url,
    /// The path's segments, each a list of parts; `None` when there is no placeholder and `base` is complete.
    segments: Option<Vec<Vec<Part>>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Literal(String),
    Argument(String),
}

impl UrlTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// A sentence with the problem: not a URL, a placeholder outside of the path, an unclosed brace.
    pub fn parse(text: &str) -> Result<Self, String> {
        let not_a_url = |error: url::ParseError| format!("not a URL: {error}");
        if !text.contains(['{', '}']) {
            return Ok(Self { base: Url::parse(text).map_err(not_a_url)?, segments: None });
        }
        let authority = text.find("://").map_or(0, |at| at + 3);
        let path = text[authority..].find(['/', '?', '#']).map_or(text.len(), |at| authority + at);
        let end = text[path..].find(['?', '#']).map_or(text.len(), |at| path + at);
        if text[..path].contains(['{', '}']) || text[end..].contains(['{', '}']) {
            return Err("a placeholder such as {id} is allowed in the path only; other arguments go into the query or the body".to_owned());
        }
        let base = Url::parse(&format!("{}/{}", &text[..path], &text[end..])).map_err(not_a_url)?;
        let segments =
            text[path..end].trim_start_matches('/').split('/').map(parts).collect::<Result<_, _>>()?;
        Ok(Self { base, segments: Some(segments) })
    }

    /// Returns the URL without its path's arguments, for checks of scheme and host.
    #[must_use]
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Returns the names of the arguments that the path needs.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flatten().flatten().filter_map(|part| match part {
            Part::Argument(name) => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// Returns the URL for one call, and removes the arguments that it uses from `arguments`.
    ///
    /// # Errors
    /// A sentence that names the argument that is missing, is no plain value, or would lead to another path.
    pub fn fill(&self, arguments: &mut Map<String, Value>) -> Result<Url, String> {
        let Some(segments) = &self.segments else { return Ok(self.base.clone()) };
        let mut path = String::new();
        for segment in segments {
            let mut text = String::new();
            for part in segment {
                match part {
                    Part::Literal(literal) => text.push_str(literal),
                    Part::Argument(name) => encode(&plain(arguments, name)?, &mut text),
                }
            }
            // Every URL parser resolves `.` and `..`, even percent-encoded.
            if matches!(text.as_str(), "" | "." | "..")
                && segment.iter().any(|part| matches!(part, Part::Argument(_)))
            {
                return Err("an argument that is empty, `.` or `..` cannot be in the path".to_owned());
            }
            path.push('/');
            path.push_str(&text);
        }
        for name in self.arguments() {
            arguments.shift_remove(name);
        }
        let mut url = self.base.clone();
        url.set_path(&path);
        Ok(url)
    }
}

fn parts(segment: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = segment;
    while let Some(open) = rest.find(['{', '}']) {
        let close = rest[open..].find('}').map(|at| open + at);
        let name = close.map_or("", |close| rest.get(open + 1..close).unwrap_or_default());
        if !rest[open..].starts_with('{') || name.is_empty() || name.contains('{') {
            return Err("a placeholder is written {name}".to_owned());
        }
        if open > 0 {
            parts.push(Part::Literal(rest[..open].to_owned()));
        }
        parts.push(Part::Argument(name.to_owned()));
        rest = close.map_or("", |close| &rest[close + 1..]);
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest.to_owned()));
    }
    Ok(parts)
}

fn plain(arguments: &Map<String, Value>, name: &str) -> Result<String, String> {
    match arguments.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        Some(_) => Err(format!(
            "the argument `{name}` is in the URL's path and must be a string, a number or a boolean"
        )),
        None => Err(format!("the argument `{name}` is missing; it is in the URL's path")),
    }
}

/// Percent-encodes everything except RFC 3986's unreserved characters.
fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fill(template: &str, arguments: Value) -> Result<(String, Value), String> {
        let Value::Object(mut arguments) = arguments else { panic!("an object") };
        let url = UrlTemplate::parse(template)?.fill(&mut arguments)?;
        Ok((url.to_string(), Value::Object(arguments)))
    }

    #[test]
    fn arguments_are_encoded_and_taken_out() {
        let (url, left) =
            fill("https://a.example/v1/{kind}/x-{id}?k=1", json!({"kind": "a/b ü", "id": 7, "q": "z"}))
                .unwrap();
        assert_eq!(url, "https://a.example/v1/a%2Fb%20%C3%BC/x-7?k=1");
        assert_eq!(left, json!({"q": "z"}));
        assert_eq!(fill("https://a.example/x?y=1", json!({"q": 1})).unwrap().0, "https://a.example/x?y=1");
    }

    #[test]
    fn no_argument_leaves_its_segment() {
        for bad in ["..", ".", ""] {
            assert!(fill("https://a.example/v1/{id}", json!({"id": bad})).is_err(), "{bad:?}");
        }
        assert!(fill("https://a.example/v1/{a}{b}", json!({"a": ".", "b": "."})).is_err());
        for odd in ["%2e%2e", "../../admin", "a?b=c#d", "@evil.example", "\\..\\..", "//evil.example"] {
            let (url, _) = fill("https://a.example/v1/{id}", json!({"id": odd})).unwrap();
            let url = Url::parse(&url).unwrap();
            assert_eq!(url.host_str(), Some("a.example"), "{odd}");
            assert!(
                url.path().starts_with("/v1/") && url.path().matches('/').count() == 2,
                "{odd} became {url}"
            );
            assert_eq!(url.query(), None, "{odd}");
        }
    }

    #[test]
    fn placeholders_stand_in_the_path_only() {
        for bad in [
            "https://{host}/x",
            "{scheme}://a.example/",
            "https://a.example/?q={q}",
            "https://a.example/{a",
            "https://a.example/a}",
            "https://a.example/{}",
            "not a url",
        ] {
            assert!(UrlTemplate::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn missing_and_nested_arguments_are_named() {
        assert!(fill("https://a.example/{id}", json!({})).unwrap_err().contains("`id` is missing"));
        assert!(fill("https://a.example/{id}", json!({"id": {}})).unwrap_err().contains("`id`"));
    }
}
