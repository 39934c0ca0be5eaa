//! Recordings: engagements of every kind, and every answer of the API about each of them.
//!
//! A kind is a short story on a [`stage::Stage`]: jobs are pushed, questions and reviews are answered, time passes.
//! The test then collects the jobs, engagements, events, messages, checkpoints, costs, exports and replays over HTTP
//! ([`collect`]). It names the random ids by their order of appearance ([`names`]), and compares the text with the
//! file `answers/KIND.json` ([`compare`]). SQLite, encrypted SQLite and PostgreSQL have to give the same answers, so
//! there is one file for all of them.
//!
//! `TURNSTONE_BLESS=1 cargo test --workspace --test it -- recorded` writes the files again.

mod alike;
mod collect;
mod compare;
mod kinds;
mod names;
mod page;
mod shorten;
mod stage;

/// Makes the tests of the kinds in a file.
///
/// The kinds of `everywhere` run on SQLite and PostgreSQL by default, and on an encrypted SQLite in the long suite.
/// The others run on SQLite, and on PostgreSQL in the long suite.
macro_rules! recordings {
    (everywhere: [$($every:ident),* $(,)?], sqlite_first: [$($first:ident),* $(,)?] $(,)?) => {
        /// The names of the kinds in this file.
        pub(super) const KINDS: &[&str] = &[$(stringify!($every),)* $(stringify!($first),)*];

        mod sqlite {
            $(#[tokio::test] async fn $every() { crate::recorded::compare::on_sqlite(stringify!($every), super::$every).await; })*
            $(#[tokio::test] async fn $first() { crate::recorded::compare::on_sqlite(stringify!($first), super::$first).await; })*
        }
        mod sealed {
            $(
                #[tokio::test]
                #[ignore = "long: the same answers from an encrypted database"]
                async fn $every() { crate::recorded::compare::on_sealed(stringify!($every), super::$every).await; }
            )*
        }
        mod postgres {
            $(
                #[tokio::test]
                #[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
                async fn $every() { crate::recorded::compare::on_postgres(stringify!($every), super::$every).await; }
            )*
            $(
                #[tokio::test]
                #[ignore = "long: the same answers on PostgreSQL"]
                async fn $first() { crate::recorded::compare::on_postgres(stringify!($first), super::$first).await; }
            )*
        }
    };
}
use recordings;
