//! Numbers with more digits than CEL holds. An expression may pass them by; one that compares or adds them fails.

use crate::number::one_spelling;
use cel::common::types::Type;
use cel::common::value::{StaticVal, Val};
use serde_json::Number;
use std::any::Any;

/// The name of their type, by which errors are recognised.
pub(super) const NAME: &str = "inexact_number";

static TYPE: Type = Type::new_unspecified_type(NAME);

/// A number that neither 64 bits nor a float hold.
#[derive(Debug)]
pub(super) struct InexactNumber(pub(super) Number);

impl Val for InexactNumber {
    fn get_type(&self) -> &Type {
        &TYPE
    }

    fn cel_type() -> &'static Type {
        &TYPE
    }

    /// No number that CEL holds is equal to it.
    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| one_spelling(&self.0) == one_spelling(&other.0))
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(Self(self.0.clone()))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for InexactNumber {}
