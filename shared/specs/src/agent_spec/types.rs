//! The type system: JSON Schema types, and which value may be cast to which type.

use serde_json::Value;
use std::collections::BTreeMap;

/// The type of a property. Titles, descriptions and defaults are no part of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Type {
    /// A schema without `type` and `anyOf`.
    Any,
    /// `null`
    Null,
    /// `boolean`
    Boolean,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `string`
    String,
    /// `array` and the type of its items.
    Array(Box<Type>),
    /// `object`
    Object(ObjectType),
    /// `anyOf`, or a list of types; sorted, without duplicates.
    Union(Vec<Type>),
}

/// The type of an object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObjectType {
    /// The types of its named properties.
    pub properties: BTreeMap<String, Type>,
    /// The type of its other properties; `None` when there may be no others.
    pub additional: Option<Box<Type>>,
}

impl Type {
    /// Parses the type of a schema.
    ///
    /// # Errors
    /// A sentence that says which part of the schema is not supported.
    pub fn of(schema: &Value) -> Result<Self, String> {
        let Value::Object(map) = schema else {
            return Err("a schema must be a map".to_owned());
        };
        for keyword in ["allOf", "oneOf"] {
            if map.contains_key(keyword) {
                return Err(format!("`{keyword}` is not supported; write `anyOf` or a list of types"));
            }
        }
        if let Some(any_of) = map.get("anyOf") {
            let members = any_of.as_array().filter(|members| !members.is_empty());
            let members = members.ok_or("`anyOf` must be a list of schemas")?;
            return members.iter().map(Self::of).collect::<Result<_, _>>().map(Self::union);
        }
        match map.get("type") {
            None => Ok(Self::Any),
            Some(Value::String(name)) => Self::named(name, schema),
            Some(Value::Array(names)) if !names.is_empty() => {
                let member = |name: &Value| match name.as_str() {
                    Some(name) => Self::named(name, schema),
                    None => Err("a list of types must hold texts".to_owned()),
                };
                names.iter().map(member).collect::<Result<_, _>>().map(Self::union)
            }
            Some(_) => Err("`type` must be a text or a list of texts".to_owned()),
        }
    }

    fn named(name: &str, schema: &Value) -> Result<Self, String> {
        Ok(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array(Box::new(schema.get("items").map_or(Ok(Self::Any), Self::of)?)),
            "object" => Self::Object(ObjectType::of(schema)?),
            other => {
                let names = ["string", "integer", "number", "boolean", "object", "array", "null"];
                let hint = crate::suggest::hint(other, names);
                return Err(format!("there is no type `{}`{hint}", crate::shape::shortened(other)));
            }
        })
    }

    /// Returns the union of types: a single one stays what it is.
    #[must_use]
    pub fn union(members: Vec<Self>) -> Self {
        let mut flat = Vec::with_capacity(members.len());
        for member in members {
            match member {
                Self::Union(inner) => flat.extend(inner),
                one => flat.push(one),
            }
        }
        flat.sort();
        flat.dedup();
        match flat.pop() {
            Some(only) if flat.is_empty() => only,
            Some(last) => {
                flat.push(last);
                Self::Union(flat)
            }
            None => Self::Any,
        }
    }

    /// Returns whether every value of this type may be cast to another type, so that a data edge may lead from the one to
    /// the other.
    #[must_use]
    pub fn is_castable_to(&self, to: &Self) -> bool {
        if self == to || matches!(to, Self::Any | Self::String) {
            return true;
        }
        match (self, to) {
            (Self::Union(_), _) | (_, Self::Union(_)) => {
                self.members().iter().all(|from| to.members().iter().any(|to| from.is_castable_to(to)))
            }
            (Self::Integer | Self::Number | Self::Boolean, Self::Integer | Self::Number | Self::Boolean) => {
                true
            }
            (Self::Array(from), Self::Array(to)) => from.is_castable_to(to),
            (Self::Object(from), Self::Object(to)) => from.is_castable_to(to),
            _ => false,
        }
    }

    /// A value of an untyped schema has no type that could contradict a union.
    fn members(&self) -> &[Self] {
        match self {
            Self::Any => &[],
            Self::Union(members) => members,
            one => std::slice::from_ref(one),
        }
    }

    /// Returns whether numbers are all that a value of this type can be.
    #[must_use]
    pub const fn is_numeric(&self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }
}

impl ObjectType {
    fn of(schema: &Value) -> Result<Self, String> {
        let mut properties = BTreeMap::new();
        match schema.get("properties") {
            None => {}
            Some(Value::Object(map)) => {
                for (name, schema) in map {
                    let read = Type::of(schema).map_err(|why| format!("property `{name}`: {why}"))?;
                    properties.insert(name.clone(), read);
                }
            }
            Some(_) => return Err("`properties` must be a map of schemas".to_owned()),
        }
        let additional = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            None | Some(Value::Bool(true)) => Some(Box::new(Type::Any)),
            Some(schema) => Some(Box::new(Type::of(schema)?)),
        };
        Ok(Self { properties, additional })
    }

    fn is_castable_to(&self, to: &Self) -> bool {
        let named = to
            .properties
            .iter()
            .all(|(name, to)| self.properties.get(name).is_some_and(|from| from.is_castable_to(to)));
        let others = match (&self.additional, &to.additional) {
            (None, None) => true,
            (Some(from), Some(to)) => from.is_castable_to(to),
            _ => false,
        };
        named && others
    }
}
