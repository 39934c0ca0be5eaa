//! The declaration of event data, and its reading.

/// Declares the data of events: structs that are written and read as JSON, and have a JSON Schema. A field with `?` is
/// left out when it has no value.
macro_rules! bodies {
    (@fields [$($head:tt)*] { $($done:tt)* }) => { $($head)* { $($done)* } };
    (@fields [$($head:tt)*] { $($done:tt)* } $(#[$meta:meta])* $field:ident?: $type:ty, $($rest:tt)*) => {
        bodies! { @fields [$($head)*] {
            $($done)* $(#[$meta])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,
        } $($rest)* }
    };
    (@fields [$($head:tt)*] { $($done:tt)* } #[serde(flatten)] $field:ident: $type:ty, $($rest:tt)*) => {
        bodies! { @fields [$($head)*] {
            $($done)* #[doc = "The fields of this type."] #[serde(flatten)] pub $field: $type,
        } $($rest)* }
    };
    (@fields [$($head:tt)*] { $($done:tt)* } $(#[$meta:meta])* $field:ident: $type:ty, $($rest:tt)*) => {
        bodies! { @fields [$($head)*] { $($done)* $(#[$meta])* pub $field: $type, } $($rest)* }
    };
    ($($(#[$doc:meta])* $name:ident { $($fields:tt)* })+) => {
        $(bodies! { @fields [
            $(#[$doc])* #[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)] pub struct $name
        ] {} $($fields)* })+
    };
}
pub(super) use bodies;
