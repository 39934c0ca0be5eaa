//! The macro with which rows are declared, and the list of the declarations that name a table.

use super::{Table, access, engagements, fleet, jobs, tools};

/// Returns every declaration that names a table.
pub(crate) fn stored() -> impl Iterator<Item = &'static Table> {
    let all = [jobs::STORED, engagements::STORED, tools::STORED, fleet::STORED, access::STORED];
    all.into_iter().flatten().map(|table| table())
}

/// Declares rows:
///
/// ```ignore
/// declare! {
///     /// A value of an agent's state.
///     struct StateKey into state_keys [scope, name] {
///         scope: String,
///         name: String,
///         content: String => sealed,
///     }
/// }
/// ```
///
/// `for Name` precedes a struct that exists already. Rows are inserted `into` a table, or are only read (`in`). The
/// columns in brackets are the key. A row that belongs to no single table has neither. An option follows `=>`: a
/// column is `sealed`; a field is read `from` another column, or `with` a function; or it is `beside` the columns
/// and begins as its default.
macro_rules! declare {
    ($($(#[$meta:meta])* $what:ident $name:ident $($how_of:ident $table:ident [$($key:ident),+])? {
        $($(#[$doc:meta])* $field:ident: $type:ty $(=> $how:ident $($of:ident)?)?,)+
    })+) => {
        $(
            declare!(@$what [$(#[$meta])*] $name { $([$(#[$doc])*] $field: $type,)+ });
            declare!(@rows $name { $($field: $type $(=> $how $($of)?)?,)+ });
            declare!(@table $name [$($how_of $table [$($key),+])?] { $($field $(=> $how $($of)?)?,)+ });
        )+
        declare!(@list $([$($table $name)?])+);
    };
    (@for [$(#[$meta:meta])*] $name:ident { $($fields:tt)+ }) => {};
    (@struct [$(#[$meta:meta])*] $name:ident { $([$(#[$doc:meta])*] $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $field: $type,)+
        }
    };
    (@list $([])+) => {};
    (@list $([$($table:ident $name:ident)?])+) => {
        /// Those that name a table.
        pub(super) static STORED: &[fn() -> &'static $crate::engine::rows::Table] =
            &[$($(<$name as $crate::engine::rows::Stored>::table,)?)+];
    };
    (@rows $name:ident { $($field:ident: $type:ty $(=> $how:ident $($of:ident)?)?,)+ }) => {
        impl $crate::engine::rows::Batch for $name {
            const COLUMNS: &'static [(&'static str, Option<$crate::engine::columns::ColumnKind>)] =
                &[$((stringify!($field), declare!(@kind $type $(, $how $($of)?)?)),)+];

            fn put(
                self,
                columns: &mut [$crate::engine::columns::Column],
                places: &[Option<usize>],
            ) -> Result<(), $crate::StoreError> {
                let mut places = places.iter().copied();
                $(declare!(@put places, columns, put, self.$field $(, $how $($of)?)?);)+
                Ok(())
            }

            fn put_copy(
                &self,
                columns: &mut [$crate::engine::columns::Column],
                places: &[Option<usize>],
            ) -> Result<(), $crate::StoreError> {
                let mut places = places.iter().copied();
                $(declare!(@put places, columns, put_copy, &self.$field $(, $how $($of)?)?);)+
                Ok(())
            }
        }

        impl $crate::engine::rows::DeclaredRow for $name {
            fn read<R: $crate::engine::rows::Fields>(
                row: &R,
            ) -> Result<Self, $crate::engine::rows::Inconsistency> {
                Ok(Self { $($field: declare!(@get row, $field $(, $how $($of)?)?),)+ })
            }
        }
    };
    (@table $name:ident [] { $($fields:tt)+ }) => {};
    (@table $name:ident [into $table:ident [$($key:ident),+]] { $($fields:tt)+ }) => {
        impl $crate::engine::rows::Inserted for $name {}

        declare!(@table $name [true $table [$($key),+]] { $($fields)+ });
    };
    (@table $name:ident [in $table:ident [$($key:ident),+]] { $($fields:tt)+ }) => {
        declare!(@table $name [false $table [$($key),+]] { $($fields)+ });
    };
    (@table $name:ident [$inserted:ident $table:ident [$($key:ident),+]] { $($field:ident $(=> $how:ident $($of:ident)?)?,)+ }) => {
        impl $crate::engine::rows::Stored for $name {
            fn table() -> &'static $crate::engine::rows::Table {
                const KEY: &[&str] = &[$(stringify!($key)),+];
                static TABLE: $crate::engine::rows::Table = $crate::engine::rows::Table {
                    name: stringify!($table),
                    key: KEY,
                    sealed: declare!(@sealed [] $($field $(=> $how $($of)?)?,)+),
                    #[cfg(test)]
                    is_inserted: $inserted,
                    inserts: std::sync::LazyLock::new(|| {
                        $crate::engine::rows::Inserts::of::<$name>(stringify!($table), KEY)
                    }),
                };
                &TABLE
            }
        }
    };
    (@sealed [$($done:tt)*]) => { &[$($done)*] };
    (@sealed [$($done:tt)*] $field:ident => sealed, $($rest:tt)*) => {
        declare!(@sealed [$($done)* stringify!($field),] $($rest)*)
    };
    (@sealed [$($done:tt)*] $field:ident $(=> $how:ident $($of:ident)?)?, $($rest:tt)*) => {
        declare!(@sealed [$($done)*] $($rest)*)
    };
    (@get $row:ident, $field:ident $(, sealed)?) => { $crate::engine::rows::get($row, stringify!($field))? };
    (@get $row:ident, $field:ident, from $of:ident) => { $crate::engine::rows::get($row, stringify!($of))? };
    (@get $row:ident, $field:ident, with $of:ident) => { $of($row)? };
    (@get $row:ident, $field:ident, beside) => { Default::default() };
    (@kind $type:ty, beside) => { None };
    (@kind $type:ty, with $of:ident) => { None };
    (@kind $type:ty $(, $how:ident $($of:ident)?)?) => { Some(<$type as $crate::engine::rows::Put>::KIND) };
    (@put $places:ident, $columns:ident, $put:ident, $value:expr, beside) => { let _ = $places.next(); };
    (@put $places:ident, $columns:ident, $put:ident, $value:expr, with $of:ident) => { let _ = $places.next(); };
    (@put $places:ident, $columns:ident, $put:ident, $value:expr $(, $how:ident $($of:ident)?)?) => {
        if let Some(Some(place)) = $places.next() {
            $crate::engine::rows::Put::$put($value, &mut $columns[place])?;
        }
    };
}

pub(crate) use declare;
