//! Tests that run on SQLite and on PostgreSQL.

/// Makes the tests of cases that take a `Backend`. The cases of `everywhere` run on both stores by default, because
/// their statements or their concurrency are proven nowhere else. The others run on SQLite, and on PostgreSQL in the
/// long suite.
macro_rules! on_stores {
    (everywhere: [$($every:ident),* $(,)?], sqlite_first: [$($first:ident),* $(,)?] $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $every() { super::$every(turnstone_tests::Backend::Sqlite).await; })*
            $(#[tokio::test] async fn $first() { super::$first(turnstone_tests::Backend::Sqlite).await; })*
        }
        mod postgres {
            $(
                #[tokio::test]
                #[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
                async fn $every() { super::$every(turnstone_tests::Backend::Postgres).await; }
            )*
            $(
                #[tokio::test]
                #[ignore = "long: the same case on PostgreSQL"]
                async fn $first() { super::$first(turnstone_tests::Backend::Postgres).await; }
            )*
        }
    };
}
pub(crate) use on_stores;
