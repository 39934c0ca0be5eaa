//! The one place that decides what an error of PostgreSQL, or of its connection, means for the statement and its session.
//!
//! | SQLSTATE | meaning | verdict |
//! |---|---|---|
//! | none: I/O, TLS, protocol, no answer in time | the connection is broken or out of step | replace |
//! | 08… | connection exceptions, also those that a pooler reports | replace |
//! | 0A000 of a cached plan | a migration changed the type of a column ("cached plan must not change result type") | replace all |
//! | 0A000, others | the server lacks a feature | refuse |
//! | 25006 | the server is read-only: a demoted primary, or `default_transaction_read_only` | replace all |
//! | 25P02, 25P03, 25P04, others of 25… | the session's transaction is not in the state that the store assumes | replace |
//! | 26000, 42P05 | a prepared statement is unknown or exists twice, such as after `DISCARD ALL` | replace |
//! | 34000 | a cursor is unknown: the session is out of step | replace |
//! | 28…, 3D000 | the user or the database is refused, when a connection is made | refuse at the start of a process, retry in service |
//! | 40… | serialization failures and deadlocks | retry |
//! | 53… | a full disk, no memory, too many connections | retry |
//! | 55000 | the server is not in the required state, such as in recovery | replace |
//! | 55P03, 57014, 72000 | a lock, a time limit or a snapshot | retry |
//! | 57P01 … 57P05 | shutdown, crash, start-up, dropped database, idle session | replace |
//! | XX… | internal errors and damaged data of the server | discard |
//! | any with severity FATAL or PANIC | the server has ended the session | replace, unless it is refused |
//! | all others | the statement itself is wrong, such as 22…, 23…, 42… and P0001 | refuse |

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// The consequence of an error for its statement and its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SessionVerdict {
    /// The statement may succeed on the same session.
    Retry,
    /// The statement fails each time; its session serves others.
    Refuse,
    /// The session cannot serve: it is closed, and the statement may succeed on a new one.
    Replace,
    /// The same holds for every session of this process that is as old.
    ReplaceAll,
    /// The session is closed, and the statement is refused: repeating it without end would block all others.
    Discard,
}

impl SessionVerdict {
    /// Returns the verdict about an error.
    pub(super) fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed => Self::Replace,
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => Self::Retry,
            sqlx::Error::Database(error) => {
                let code = error.code().unwrap_or_default();
                let routine = error.try_downcast_ref::<PgDatabaseError>().and_then(PgDatabaseError::routine);
                Self::of_state(&code, routine, ends_session(&**error))
            }
            _ => Self::Refuse,
        }
    }

    fn of_state(code: &str, routine: Option<&str>, ended: bool) -> Self {
        let verdict = match (code, code.get(..2).unwrap_or_default()) {
            // The text depends on the server's language; the routine that raises it does not.
            ("0A000", _) if routine == Some("RevalidateCachedQuery") => Self::ReplaceAll,
            ("25006", _) => Self::ReplaceAll,
            ("26000" | "42P05" | "34000" | "55000", _) | (_, "08" | "25") => Self::Replace,
            ("57014" | "55P03" | "72000", _) | (_, "40" | "53") => Self::Retry,
            (_, "57") if code.starts_with("57P") => Self::Replace,
            (_, "XX") => Self::Discard,
            _ => Self::Refuse,
        };
        match verdict {
            Self::Retry if ended => Self::Replace,
            Self::Refuse if ended => Self::Discard,
            verdict => verdict,
        }
    }

    /// Returns true if the statement may succeed when it is repeated.
    pub(super) fn passes(self) -> bool {
        matches!(self, Self::Retry | Self::Replace | Self::ReplaceAll)
    }

    /// Returns true if the session serves further statements.
    pub(super) fn keeps_session(self) -> bool {
        matches!(self, Self::Retry | Self::Refuse)
    }

    /// Returns true if only a new session can run the statement.
    pub(super) fn needs_new_session(self) -> bool {
        matches!(self, Self::Replace | Self::ReplaceAll)
    }
}

/// Returns true if the database rolled back the transaction that met this error. Otherwise its outcome is unknown: a server that
/// ends the session may have committed before, and a pooler does not know.
pub(super) fn rolled_back(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| {
        let code = error.code().unwrap_or_default();
        !ends_session(error) && !["08", "57P"].iter().any(|kind| code.starts_with(kind)) && code != "40003"
    })
}

fn ends_session(error: &dyn DatabaseError) -> bool {
    let severity = error.try_downcast_ref::<PgDatabaseError>().map(PgDatabaseError::severity);
    matches!(severity, Some(PgSeverity::Fatal | PgSeverity::Panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_errors_has_its_verdict() {
        use SessionVerdict::{Discard, Refuse, Replace, ReplaceAll, Retry};
        for (codes, verdict) in [
            (&["40001", "40P01", "53100", "53200", "53300", "55P03", "57014", "72000"][..], Retry),
            (&["08000", "08006", "08P01", "25P02", "25P03", "25P04", "26000", "34000"], Replace),
            (&["42P05", "55000", "57P01", "57P02", "57P03", "57P04", "57P05"], Replace),
            (&["25006"], ReplaceAll),
            (&["XX000", "XX001", "XX002"], Discard),
            (&["0A000", "22003", "23505", "28P01", "3D000", "42501", "42703", "P0001", "", "é"], Refuse),
        ] {
            for code in codes {
                assert_eq!(SessionVerdict::of_state(code, None, false), verdict, "{code}");
            }
        }
        assert_eq!(SessionVerdict::of_state("0A000", Some("RevalidateCachedQuery"), false), ReplaceAll);
        assert_eq!(SessionVerdict::of_state("53300", None, true), Replace);
        assert_eq!(SessionVerdict::of_state("28000", None, true), Discard);
    }

    #[test]
    fn a_connection_that_is_out_of_step_is_replaced() {
        let broken = sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert!(SessionVerdict::of(&broken).needs_new_session() && !rolled_back(&broken));
        assert_eq!(
            SessionVerdict::of(&sqlx::Error::Protocol("unexpected message".to_owned())),
            SessionVerdict::Replace
        );
        assert_eq!(SessionVerdict::of(&sqlx::Error::RowNotFound), SessionVerdict::Refuse);
    }
}
