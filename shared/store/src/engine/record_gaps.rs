//! Finds turns and phases that the records of engagements lack.

use super::rows::{Inconsistency, get};
use super::session::{Reader, Row};
use super::views::all;
use crate::{StoreError, sql};
use std::collections::BTreeMap;
use turnstone_domain::record::{RecordGap, RecordedPhases, gaps};
use turnstone_domain::{EngagementId, Phase, RecordEnd};

/// Engagements whose records are read at once.
const PAGE: i64 = 200;

/// The record of an engagement, as numbers.
struct Outline {
    id: EngagementId,
    begins: i64,
    end: RecordEnd,
    recorded: Vec<RecordedPhases>,
}

impl Outline {
    fn decode(row: &Row) -> Result<(i64, Self), Inconsistency> {
        let phase = Phase::from_index(get(row, "end_phase")?);
        let turn: Option<i64> = get(row, "turn")?;
        let recorded = turn.map(|turn| {
            Ok(RecordedPhases {
                turn,
                first: get(row, "phase")?,
                count: get(row, "phases")?,
                job: get(row, "job_seq")?,
            })
        });
        let outline = Self {
            id: get(row, "id")?,
            begins: get(row, "begins")?,
            end: RecordEnd { writes: get(row, "writes")?, turn: get(row, "end_turn")?, phase },
            recorded: recorded.transpose()?.into_iter().collect(),
        };
        Ok((get(row, "seq")?, outline))
    }

    fn gaps(self) -> Vec<RecordGap> {
        gaps(self.begins, self.recorded, Some(self.end))
    }
}

/// Joins the rows of each engagement.
fn joined(rows: Vec<(i64, Outline)>) -> BTreeMap<i64, Outline> {
    let mut outlines: BTreeMap<i64, Outline> = BTreeMap::new();
    for (seq, row) in rows {
        match outlines.get_mut(&seq) {
            Some(outline) => outline.recorded.extend(row.recorded),
            None => drop(outlines.insert(seq, row)),
        }
    }
    outlines
}

/// Returns the gaps in the record of an engagement, with those in what it reads of others.
pub(super) async fn of_engagement(reader: &Reader, id: &EngagementId) -> Result<Vec<RecordGap>, StoreError> {
    let (action, values) = ("read the phases of a record", [id.as_str().into()]);
    let text = &sql::SELECT_RECORD_PHASES_OF_ENGAGEMENT;
    let rows = all(reader, action, text, &values, Outline::decode).await?;
    Ok(joined(rows).into_values().flat_map(Outline::gaps).collect())
}

/// Reports every gap in the records of all engagements, with the number and the id of the engagement.
pub(super) async fn of_all(
    reader: &Reader,
    report: &mut (dyn FnMut(i64, &EngagementId, RecordGap) + Send),
) -> Result<(), StoreError> {
    let mut after = i64::MIN;
    loop {
        let (action, values) = ("read the phases of records", [after.into(), PAGE.into()]);
        let rows = all(reader, action, &sql::SELECT_RECORD_PHASES, &values, Outline::decode).await?;
        let Some(last) = rows.iter().map(|(seq, _)| *seq).max() else { return Ok(()) };
        after = last;
        for (seq, outline) in joined(rows) {
            let id = outline.id.clone();
            outline.gaps().into_iter().for_each(|gap| report(seq, &id, gap));
        }
    }
}
