//! The shape of a document, as a table, and the one walk that checks a document against it.

use crate::problem::Problems;
use crate::suggest;
use crate::tree::{Content, Node};

/// The shape of a value.
pub(crate) enum Shape {
    /// Anything.
    Any,
    /// A text.
    Text,
    /// A text with something in it.
    Filled,
    /// A text that a function accepts; the function returns the problem with it.
    Checked(fn(&str) -> Result<(), String>),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number within bounds.
    Integer(i64, i64),
    /// A number within bounds.
    Number(f64, f64),
    /// A list of values of one shape.
    List(&'static Shape),
    /// A map from any key to values of one shape.
    Table(&'static Shape),
    /// A map with known keys.
    Object(&'static Object),
    /// A text, or a map with known keys.
    TextOr(&'static Object),
}

/// A map with known keys.
pub(crate) struct Object {
    /// The rule that an unknown key or a value of the wrong type breaks.
    pub(crate) rule: &'static str,
    /// The reaction to an unknown key.
    pub(crate) others: Others,
    /// The known keys.
    pub(crate) fields: &'static [Field],
}

/// The reaction to an unknown key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// It is an error: a misspelt key must not silently remove a restriction.
    Refused,
    /// It is ignored with a warning, unless it is close to a known one: then it is an error.
    Warned,
    /// It is ignored, unless it is close to a known one: then it is an error.
    Ignored,
}

/// A known key.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// The rule that a bad value breaks; `None` for the rule of the map.
    rule: Option<&'static str>,
    required: bool,
    nullable: bool,
}

impl Field {
    pub(crate) const fn new(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, rule: None, required: false, nullable: false }
    }

    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Makes null the same as absent.
    pub(crate) const fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    pub(crate) const fn rule(mut self, rule: &'static str) -> Self {
        self.rule = Some(rule);
        self
    }
}

/// Checks a value and everything in it.
pub(crate) fn check(node: &Node, shape: &Shape, what: &str, rule: &'static str, problems: &mut Problems) {
    let wrong = match (shape, &node.content) {
        (Shape::Any, _) => Ok(()),
        (Shape::Text, Content::Text(_)) => Ok(()),
        (Shape::Filled, Content::Text(text)) if text.trim().is_empty() => Err("must not be empty".to_owned()),
        (Shape::Filled, Content::Text(_)) => Ok(()),
        (Shape::Checked(accepts), Content::Text(text)) => accepts(text),
        (Shape::OneOf(words), Content::Text(text)) => one_of(text, words),
        (Shape::Flag, Content::Flag(_)) => Ok(()),
        (Shape::Integer(min, max), Content::Integer(number)) => within(number, min, max),
        (Shape::Number(min, max), Content::Integer(number)) => within(&(*number as f64), min, max),
        (Shape::Number(min, max), Content::Number(number)) => within(number, min, max),
        (Shape::List(shape), Content::List(items)) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, item)| check(item, shape, &format!("{what}[{at}]"), rule, problems));
            Ok(())
        }
        (Shape::Table(shape), Content::Map(entries)) => {
            for entry in entries {
                check(&entry.value, shape, &join(what, &entry.key), rule, problems);
            }
            Ok(())
        }
        (Shape::Object(object) | Shape::TextOr(object), Content::Map(_)) => {
            check_object(node, object, what, problems);
            Ok(())
        }
        (Shape::TextOr(_), Content::Text(_)) => Ok(()),
        (Shape::Integer(..), Content::Number(number)) => {
            Err(format!("must be a whole number, written without a point or an exponent, not {number}"))
        }
        (shape, content) => {
            let wants_text = matches!(
                shape,
                Shape::Text | Shape::Filled | Shape::Checked(_) | Shape::OneOf(_) | Shape::TextOr(_)
            );
            let is_quoted = !matches!(content, Content::Flag(_) | Content::Integer(_) | Content::Number(_));
            let hint = if wants_text && !is_quoted { " (put a text in quotes)" } else { "" };
            Err(format!("must be {}, not {}{hint}", expected(shape), found(content)))
        }
    };
    if let Err(wrong) = wrong {
        let subject = if what.is_empty() { "the document".to_owned() } else { format!("`{what}`") };
        problems.error(node.at, rule, format!("{subject} {wrong}"));
    }
}

fn check_object(node: &Node, object: &Object, what: &str, problems: &mut Problems) {
    for entry in node.entries() {
        let Some(field) = object.fields.iter().find(|field| field.name == entry.key) else {
            unknown_key(entry, object, what, problems);
            continue;
        };
        if !(field.nullable && entry.value.is_null()) {
            let rule = field.rule.unwrap_or(object.rule);
            check(&entry.value, &field.shape, &join(what, field.name), rule, problems);
        }
    }
    for field in object.fields.iter().filter(|field| field.required && node.get(field.name).is_none()) {
        let message = format!("`{}` is missing; it is required", join(what, field.name));
        problems.error(node.at, field.rule.unwrap_or(object.rule), message);
    }
}

fn unknown_key(entry: &crate::tree::Entry, object: &Object, what: &str, problems: &mut Problems) {
    let hint = suggest::hint(&entry.key, object.fields.iter().map(|field| field.name));
    let key = join(what, &entry.key);
    if object.others == Others::Refused || !hint.is_empty() {
        problems.error(entry.at, object.rule, format!("unknown key `{key}`{hint}"));
    } else if object.others == Others::Warned {
        problems.warning(entry.at, object.rule, format!("unknown key `{key}`; it has no effect"));
    }
}

fn join(what: &str, key: &str) -> String {
    if what.is_empty() { key.to_owned() } else { format!("{what}.{key}") }
}

fn one_of(text: &str, words: &[&'static str]) -> Result<(), String> {
    if words.contains(&text) {
        return Ok(());
    }
    Err(format!("must be one of {}, not `{}`", words.join(", "), shortened(text)))
}

fn within<T: PartialOrd + std::fmt::Display>(number: &T, min: &T, max: &T) -> Result<(), String> {
    if number >= min && number <= max {
        return Ok(());
    }
    let most = max.to_string();
    // Such a bound is only that of the type.
    if most.len() >= BOUNDLESS && number < min {
        return Err(format!("must be at least {min}, not {number}"));
    }
    Err(format!("must be {min} to {most}, not {number}"))
}

/// A bound with this many digits is no practical bound.
const BOUNDLESS: usize = 16;

/// Returns enough of a text to recognise it.
pub(crate) fn shortened(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(60).chain(['…']).collect() }
}

fn expected(shape: &Shape) -> &'static str {
    match shape {
        Shape::Any => "a value",
        Shape::Text | Shape::Filled | Shape::Checked(_) | Shape::OneOf(_) => "a text",
        Shape::Flag => "true or false without quotes",
        Shape::Integer(..) => "a whole number without quotes",
        Shape::Number(..) => "a number without quotes",
        Shape::List(_) => "a list",
        Shape::Table(_) | Shape::Object(_) => "a map",
        Shape::TextOr(_) => "a text or a map",
    }
}

fn found(content: &Content) -> &'static str {
    match content {
        Content::Null => "nothing",
        Content::Flag(_) => "true or false",
        Content::Integer(_) | Content::Number(_) => "a number",
        Content::Text(_) => "a text",
        Content::List(_) => "a list",
        Content::Map(_) => "a map",
    }
}
