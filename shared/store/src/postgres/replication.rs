//! Checks what a failover of the server may lose: whether commits wait for a standby.

use super::connection::failed;
use super::fitness::Finding;
use crate::{StoreError, sql};
use sqlx::Row;
use sqlx::postgres::PgConnection;

/// The replication of a primary, as far as the role may see it.
struct Replication {
    /// `synchronous_standby_names`; empty if no commit waits for a standby.
    names: String,
    /// `synchronous_commit`.
    mode: String,
    /// The connected standbys.
    standbys: i64,
    /// Those of them for which commits may wait.
    synchronous: i64,
    /// Those of which the role may see nothing else.
    hidden: i64,
}

/// Returns the finding about the standbys of a primary.
pub(super) async fn finding(conn: &mut PgConnection) -> Finding {
    match replication(conn).await {
        Ok(replication) => replication.finding(),
        Err(error) => Finding {
            advice: "give this role the right to read pg_stat_replication".to_owned(),
            ..Finding::good(format!("the standbys of the database are not known: {error}"))
        },
    }
}

async fn replication(conn: &mut PgConnection) -> Result<Replication, StoreError> {
    let broken = || failed("read the state of its replication");
    let row = sqlx::raw_sql(sql::SELECT_REPLICATION.postgres).fetch_one(conn).await.map_err(broken())?;
    let count = |column: &str| row.try_get(column).map_err(broken());
    let text = |column: &str| row.try_get(column).map_err(broken());
    Ok(Replication {
        names: text("names")?,
        mode: text("mode")?,
        standbys: count("standbys")?,
        synchronous: count("synchronous")?,
        hidden: count("hidden")?,
    })
}

impl Replication {
    /// A fleet may do without a synchronous standby, so its absence is a remark. Commits that wait without end are a problem.
    fn finding(&self) -> Finding {
        let Self { names, mode, standbys, synchronous, hidden } = self;
        let remark =
            |what: String, advice: &str| Finding { advice: advice.to_owned(), ..Finding::good(what) };
        if names.trim().is_empty() {
            let (which, lost) = match standbys {
                0 => (
                    "no standby is connected".to_owned(),
                    "a loss of this server loses all since the last backup",
                ),
                1 => ("1 standby is connected".to_owned(), LOST),
                some => (format!("{some} standbys are connected"), LOST),
            };
            return remark(
                format!("the database has no synchronous standby: {which}"),
                &format!("{lost}. To lose nothing, set synchronous_standby_names, as in 'ANY 1 (a, b)'"),
            );
        }
        if matches!(mode.as_str(), "off" | "local") {
            return remark(
                format!("synchronous_commit is {mode}: no commit waits for the standbys of '{names}'"),
                &format!("{LOST}. Set synchronous_commit to on for this database or this role"),
            );
        }
        if *synchronous > 0 {
            let waits = format!("commits wait for a synchronous standby (synchronous_commit is {mode})");
            return match mode.as_str() {
                "remote_write" => {
                    remark(waits, "a crash of both machines at once may lose commits; on prevents it")
                }
                _ => Finding::good(waits),
            };
        }
        if *hidden > 0 {
            return remark(
                format!(
                    "synchronous_standby_names is '{names}'; this role cannot see if such a standby is connected"
                ),
                "GRANT pg_monitor TO this role shows it",
            );
        }
        Finding::bad(
            format!(
                "synchronous_standby_names is '{names}', and no such standby is connected: commits wait without end"
            ),
            "start the standby; or set synchronous_standby_names to one that is connected, or to '', and reload",
        )
    }
}

/// The loss of a failover to a standby for which no commit waits.
const LOST: &str =
    "a failover loses the commits that the standby did not receive: jobs that were accepted, and turns";

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &str, mode: &str, [standbys, synchronous, hidden]: [i64; 3]) -> Finding {
        let (names, mode) = (names.to_owned(), mode.to_owned());
        Replication { names, mode, standbys, synchronous, hidden }.finding()
    }

    #[test]
    fn what_a_fail_over_loses_is_a_remark() {
        for (finding, words) in [
            (found("", "on", [0, 0, 0]), "no standby is connected"),
            (found("", "on", [1, 0, 1]), "1 standby is connected"),
            (found("", "remote_apply", [2, 0, 0]), "2 standbys are connected"),
            (found("a", "local", [1, 1, 0]), "synchronous_commit is local"),
            (found("a", "remote_write", [1, 1, 0]), "synchronous_commit is remote_write"),
            (found("a", "on", [1, 0, 1]), "cannot see"),
        ] {
            assert!(finding.ok && !finding.advice.is_empty(), "{finding:?}");
            assert!(finding.what.contains(words), "{finding:?}");
        }
    }

    #[test]
    fn a_synchronous_standby_needs_no_advice() {
        for mode in ["on", "remote_apply"] {
            let finding = found("ANY 1 (a, b)", mode, [2, 2, 0]);
            assert!(finding.ok && finding.advice.is_empty(), "{finding:?}");
        }
    }

    #[test]
    fn commits_that_wait_without_end_are_a_problem() {
        for standbys in [0, 1] {
            assert!(!found("gone", "on", [standbys, 0, 0]).ok);
        }
    }
}
