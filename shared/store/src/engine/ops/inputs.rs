//! Further inputs of an engagement: its jobs take turns in the order in which they were accepted, one at a time.
//!
//! A job that finds another one of its engagement unfinished waits in `pending`. The transaction that ends a job
//! makes the next one available, whatever the end was. Each input is a request of its own, and its agent is the
//! engagement's from then on. Adding an input locks the engagement, and the end of a job writes to its stream, so
//! neither overlooks the other.

use super::super::rows::{BegunInput, EngagementRow, Fields, Inconsistency, JobRow, get, json};
use super::super::session::Session;
use super::super::statement::{Writes, read_by};
use super::super::unit::Unit;
use crate::{Ring, StoreError, sql};
use std::collections::BTreeMap;
use turnstone_domain::event::{EventBody, Reason};
use turnstone_domain::state::Trigger;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{JobId, JobState, Timestamp};

/// An engagement with several inputs, one of which has ended.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Freed {
    engagement_seq: i64,
    at: Timestamp,
}

impl Freed {
    /// Returns what the other jobs need to know of a job, if it has ended and there are others.
    pub(in super::super) fn of(job: &JobRow, engagement: Option<&EngagementRow>) -> Option<Self> {
        let (row, at) = engagement.zip(job.ended_at)?;
        (row.inputs > 1).then_some(Self { engagement_seq: row.seq, at })
    }
}

/// An input that has not ended.
#[derive(Clone, Debug)]
pub(in super::super) struct OpenInput {
    pub seq: i64,
    pub id: JobId,
    pub state: JobState,
    pub attempt: i64,
}

impl OpenInput {
    /// Returns true when it waits for another input to end. The first input waits for something outside, if it
    /// waits.
    fn waits_its_turn(&self, engagement_seq: i64) -> bool {
        self.state == JobState::Pending && self.attempt == 0 && self.seq != engagement_seq
    }
}

/// The position of an engagement between its inputs.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Standing {
    /// Inputs that have not ended, in order.
    pub open: Vec<OpenInput>,
    begun: i64,
    granted: i64,
    /// The newest input that knows of an agent that took over, and that agent.
    handoff_agent: Option<(i64, String)>,
}

impl Standing {
    /// Returns where the next input begins, after `turns` complete turns. A turn that was begun and never completed is not begun
    /// again: what belongs to it stays with the job that began it.
    pub(super) fn next(&self, turns: i64) -> Position {
        let turn = turns.max(self.begun) + 1;
        let handoff_agent = self.handoff_agent.as_ref().map(|(_, name)| name.clone());
        Position { turn, begins: turn, granted: self.granted, handoff_agent, ..Position::default() }
    }
}

/// Returns the positions of these engagements, by seq.
pub(super) async fn standings(
    session: &mut Session,
    engagements: Vec<i64>,
) -> Result<BTreeMap<i64, Standing>, StoreError> {
    let mut standings: BTreeMap<i64, Standing> =
        engagements.iter().map(|seq| (*seq, Standing::default())).collect();
    let keys = engagements.into_iter().collect();
    let (action, text) = ("look for inputs", &sql::SELECT_INPUTS_OF_ENGAGEMENTS);
    for (engagement_seq, input, begun, position) in read_by(session, action, text, keys, decode).await? {
        let standing = standings.entry(engagement_seq).or_default();
        standing.begun = standing.begun.max(begun);
        standing.granted = standing.granted.max(position.granted);
        // The waiting input got its agent before the input in front of it may have handed over to another agent.
        let is_over = input.state.is_terminal() || !input.waits_its_turn(engagement_seq);
        let handoff_agent = position.handoff_agent.filter(|_| is_over).map(|name| (input.seq, name));
        standing.handoff_agent = standing.handoff_agent.take().max(handoff_agent);
        if !input.state.is_terminal() && standing.open.iter().all(|open| open.seq != input.seq) {
            standing.open.push(input);
        }
    }
    for standing in standings.values_mut() {
        standing.open.sort_by_key(|open| open.seq);
    }
    Ok(standings)
}

fn decode(row: &impl Fields) -> Result<(i64, OpenInput, i64, Position), Inconsistency> {
    let input = OpenInput {
        seq: get(row, "seq")?,
        id: JobId(get(row, "id")?),
        state: get::<JobState>(row, "state")?,
        attempt: get(row, "attempt")?,
    };
    Ok((
        get(row, "engagement_seq")?,
        input,
        get::<Option<i64>>(row, "begun")?.unwrap_or_default(),
        json(row, "position")?,
    ))
}

/// `pending → available` for the next input of each of these engagements, unless one of them is still worked on.
pub(in super::super) async fn advance(
    session: &mut Session,
    unit: &mut Unit,
    freed: Vec<Freed>,
) -> Result<(), StoreError> {
    let mut ends: BTreeMap<i64, Timestamp> = BTreeMap::new();
    for Freed { engagement_seq, at } in freed {
        let last = ends.entry(engagement_seq).or_insert(at);
        *last = at.max(*last);
    }
    let standings = standings(session, ends.keys().copied().collect()).await?;
    let next: BTreeMap<JobId, (i64, &Standing)> = standings
        .iter()
        .filter_map(|(seq, standing)| Some((*seq, standing, standing.open.first()?)))
        .filter(|(seq, _, first)| first.waits_its_turn(*seq))
        .map(|(seq, standing, first)| (first.id.clone(), (seq, standing)))
        .collect();
    let keys = next.keys().cloned().collect();
    let rows = read_by(session, "read jobs", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
    unit.take_in(session, rows).await?;
    let mut begun = Vec::with_capacity(next.len());
    for (id, (engagement_seq, standing)) in next {
        let Some(seq) = unit.seq_of(&id) else { continue };
        let turns = unit.engagement_of(seq).map_or(0, |row| row.engagement.turns);
        let at = ends.get(&engagement_seq).copied().unwrap_or_default();
        let job = unit.change_job(seq)?;
        if job.state != JobState::Pending {
            continue;
        }
        job.position = Some(standing.next(turns));
        job.step(Trigger::Activate, at)?;
        unit.note(seq, EventBody::JobAvailable(Reason::of("next_input")), at)?;
        unit.rings.push(Ring::Available);
        begun.push(BegunInput { seq: engagement_seq, job_seq: seq });
    }
    unit.flush(session).await?;
    let mut writes = Writes::default();
    writes.some("give engagements their agents", &sql::UPDATE_ENGAGEMENT_DEFINITIONS, begun);
    writes.run(session).await
}
