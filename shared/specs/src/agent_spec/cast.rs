//! Values that pass from an output to an input: cast to the type of the input when they are read.

use super::property::Property;
use super::types::{ObjectType, Type};
use serde_json::{Map, Value};

impl Type {
    /// Casts a value to this type. Everything can be cast to a string; numbers and booleans to one another;
    /// items and members one by one. In a union, a member that the value is of goes before one that it has to
    /// be cast to.
    ///
    /// # Errors
    /// A sentence that names the type and the kind of the value, never the value.
    pub fn cast(&self, value: Value) -> Result<Value, String> {
        match (self, value) {
            (Self::Union(members), value) => {
                let exact = members.iter().any(|member| member.has(&value));
                if exact {
                    return Ok(value);
                }
                let cast = members.iter().find_map(|member| member.cast(value.clone()).ok());
                cast.ok_or_else(|| self.refusal(&value))
            }
            (Self::Any, value) => Ok(value),
            (Self::String, value) => Ok(Value::String(as_text(value))),
            (Self::Integer, Value::Number(number)) => integer(&number).ok_or_else(|| {
                "a number outside of the range of 64-bit integers cannot be cast to integer".to_owned()
            }),
            (Self::Integer, Value::Bool(flag)) => Ok(i64::from(flag).into()),
            (Self::Number, Value::Bool(flag)) => Ok(u8::from(flag).into()),
            (Self::Boolean, Value::Number(number)) => Ok((number.as_f64() != Some(0.0)).into()),
            (Self::Array(of), Value::Array(items)) => {
                let items = items.into_iter().enumerate();
                let cast = items.map(|(at, item)| of.cast(item).map_err(|why| format!("item {at}: {why}")));
                cast.collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            (Self::Object(of), Value::Object(map)) => of.cast(map).map(Value::Object),
            (Self::Null, Value::Null) => Ok(Value::Null),
            (Self::Number, value @ Value::Number(_)) | (Self::Boolean, value @ Value::Bool(_)) => Ok(value),
            (_, value) => Err(self.refusal(&value)),
        }
    }

    /// Returns whether a value is of this type without a cast.
    #[must_use]
    pub fn has(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::String, Value::String(_)) => true,
            (Self::Integer, Value::Number(number)) => number.is_i64() || number.is_u64(),
            (Self::Array(of), Value::Array(items)) => items.iter().all(|item| of.has(item)),
            (Self::Object(of), Value::Object(map)) => {
                of.properties.iter().all(|(name, of)| map.get(name).is_some_and(|value| of.has(value)))
            }
            (Self::Union(members), value) => members.iter().any(|member| member.has(value)),
            _ => false,
        }
    }

    fn refusal(&self, value: &Value) -> String {
        format!("{} cannot be cast to {}", kind(value), self.name())
    }

    /// The name of the type, as in a schema.
    fn name(&self) -> String {
        match self {
            Self::Any => "any type".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Boolean => "boolean".to_owned(),
            Self::Integer => "integer".to_owned(),
            Self::Number => "number".to_owned(),
            Self::String => "string".to_owned(),
            Self::Array(of) => format!("array of {}", of.name()),
            Self::Object(_) => "object".to_owned(),
            Self::Union(members) => members.iter().map(Self::name).collect::<Vec<_>>().join(" or "),
        }
    }
}

impl ObjectType {
    fn cast(&self, map: Map<String, Value>) -> Result<Map<String, Value>, String> {
        if let Some(missing) = self.properties.keys().find(|name| !map.contains_key(*name)) {
            return Err(format!("the property `{missing}` is missing"));
        }
        let one = |(name, value): (String, Value)| match self.properties.get(&name) {
            Some(of) => {
                of.cast(value).map(|cast| (name.clone(), cast)).map_err(|why| format!("`{name}`: {why}"))
            }
            None => Ok((name, value)),
        };
        map.into_iter().map(one).collect()
    }
}

/// Returns the reason why a result is none of a tool with these outputs, by their schemas: one output is the result
/// itself, several are its members.
#[must_use]
pub fn misfit(outputs: &[Value], result: &Value) -> Option<String> {
    let outputs: Vec<Property> = outputs.iter().filter_map(|schema| Property::of(schema).ok()).collect();
    match (outputs.as_slice(), result) {
        ([], _) => None,
        ([only], result) => only.value(Some(result.clone())).err(),
        (several, Value::Object(members)) => {
            several.iter().find_map(|output| output.value(members.get(&output.title).cloned()).err())
        }
        (several, _) => Some(format!("it must be an object with {} members", several.len())),
    }
}

impl Property {
    /// Returns the same for a value that a model wrote: a text may hold the JSON of another type.
    ///
    /// # Errors
    /// As [`Property::value`].
    pub fn written(&self, given: Option<Value>) -> Result<Value, String> {
        let inside = given.as_ref().and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
        self.value(given).or_else(|why| match inside {
            Some(inside) => self.value(Some(inside)).map_err(|_| why),
            None => Err(why),
        })
    }

    /// Returns the value of this input or output: the given one, or else the default, cast to its type.
    ///
    /// # Errors
    /// A sentence without the value: it is missing, or cannot be cast.
    pub fn value(&self, given: Option<Value>) -> Result<Value, String> {
        match given.or_else(|| self.default.clone()) {
            Some(value) => self.r#type.cast(value).map_err(|why| format!("`{}`: {why}", self.title)),
            None => Err(format!("`{}` is missing and has no default", self.title)),
        }
    }
}

/// A value as text: a string as it is, nothing for null, else JSON with blanks behind commas and colons.
fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        Value::Array(items) => {
            let items: Vec<String> = items.into_iter().map(nested_text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let member = |(name, value)| format!("{}: {}", Value::String(name), nested_text(value));
            let members: Vec<String> = map.into_iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}

fn nested_text(value: Value) -> String {
    match value {
        text @ (Value::String(_) | Value::Null) => text.to_string(),
        other => as_text(other),
    }
}

/// The number without its fraction.
fn integer(number: &serde_json::Number) -> Option<Value> {
    if number.is_i64() || number.is_u64() {
        return Some(Value::Number(number.clone()));
    }
    let whole = number.as_f64()?.trunc();
    // Both bounds are exact in f64.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole);
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    fits.then(|| (whole as i64).into())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// AGS-23: models write numbers as texts.
    #[test]
    fn a_model_may_write_json_inside_a_text() {
        let count = Property::of(&json!({"title": "n", "type": "integer"})).unwrap();
        assert_eq!(count.written(Some(json!("3"))), Ok(json!(3)));
        assert!(
            count.written(Some(json!("three"))).unwrap_err().contains("a text cannot be cast to integer")
        );
        let word = Property::of(&json!({"title": "w", "type": "string"})).unwrap();
        assert_eq!(word.written(Some(json!("3"))), Ok(json!("3")));
    }
}
