//! Templates: `${last_user}`, `${last_tool}` and `${tool_N}` are replaced by a message's text. `${tool_N}` is
//! the N-th tool message since the last user message. A JSON Pointer behind it (`${last_tool/results/0/url}`)
//! selects a part. A string that is exactly one template becomes the value that is found, with its type.

use super::tool_results;
use crate::model::ModelRequest;
use serde_json::Value;
use turnstone_domain::message::Role;

/// The messages that templates can refer to.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    last_user: &'a str,
    tools: Vec<&'a str>,
}

/// A piece of a template text.
enum Piece<'a> {
    Literal(&'a str),
    Reference(Source, &'a str),
}

#[derive(Clone, Copy)]
enum Source {
    LastUser,
    LastTool,
    Tool(usize),
}

/// Checks a text when the script is read.
///
/// # Errors
/// A sentence that shows the template that is wrong.
pub(super) fn check(text: &str) -> Result<(), String> {
    pieces(text).map(drop)
}

impl<'a> Conversation<'a> {
    /// Returns the messages of the request.
    pub(super) fn of(request: &'a ModelRequest) -> Self {
        let last_user = request.messages.iter().rev().find(|message| message.role == Role::User);
        Self {
            last_user: last_user.map_or("", |message| message.content.as_str()),
            tools: tool_results(request).collect(),
        }
    }

    /// Returns the value with the templates of every string replaced.
    pub(super) fn fill(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => match pieces(text)?.as_slice() {
                [Piece::Reference(source, pointer)] => self.find(*source, pointer),
                _ => self.fill_text(text).map(Value::String),
            },
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(map) => map.iter().map(|(key, item)| Ok((key.clone(), self.fill(item)?))).collect(),
            plain => Ok(plain.clone()),
        }
    }

    /// Returns the text with its templates replaced.
    pub(super) fn fill_text(&self, text: &str) -> Result<String, String> {
        pieces(text)?.into_iter().try_fold(String::new(), |filled, piece| {
            Ok(filled
                + &match piece {
                    Piece::Literal(literal) => literal.to_owned(),
                    Piece::Reference(source, pointer) => match self.find(source, pointer)? {
                        Value::String(text) => text,
                        other => other.to_string(),
                    },
                })
        })
    }

    fn find(&self, source: Source, pointer: &str) -> Result<Value, String> {
        let message = match source {
            Source::LastUser => Some(self.last_user),
            Source::LastTool => self.tools.last().copied(),
            Source::Tool(number) => self.tools.get(number - 1).copied(),
        };
        let message = message.ok_or("a template refers to a tool message that is not there")?;
        if pointer.is_empty() {
            return Ok(message.into());
        }
        let parsed: Value = serde_json::from_str(message)
            .map_err(|_| format!("a template looks for {pointer} in a message that is not JSON"))?;
        parsed
            .pointer(pointer)
            .cloned()
            .ok_or_else(|| format!("a template finds no {pointer} in the message it refers to"))
    }
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if start > 0 {
            pieces.push(Piece::Literal(&rest[..start]));
        }
        let inner = &rest[start + 2..];
        let end = inner.find('}').ok_or_else(|| format!("a template is not closed: {}", &rest[start..]))?;
        let (name, pointer) = inner[..end].split_at(inner[..end].find('/').unwrap_or(end));
        pieces.push(Piece::Reference(source(name)?, pointer));
        rest = &inner[end + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    Ok(pieces)
}

fn source(name: &str) -> Result<Source, String> {
    let number =
        name.strip_prefix("tool_").and_then(|number| number.parse().ok()).filter(|number| *number > 0);
    match (name, number) {
        ("last_user", _) => Ok(Source::LastUser),
        ("last_tool", _) => Ok(Source::LastTool),
        (_, Some(number)) => Ok(Source::Tool(number)),
        _ => Err(format!(
            "unknown template ${{{name}}}; there are ${{last_user}}, ${{last_tool}} and ${{tool_1}}, ${{tool_2}} …"
        )),
    }
}
