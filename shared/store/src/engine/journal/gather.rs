//! Gathers what one transaction writes to streams, and makes rows of it.

use super::super::rows::JournalRow;
use super::super::session::Session;
use super::super::statement::{Writes, as_json};
use super::entries::{Done, Happened, JournalEntry, Said};
use crate::StoreError;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::mem::take;
use turnstone_domain::event::EventBody;
use turnstone_domain::message::Message;
use turnstone_domain::{EventData, EventName, NewCheckpoint, NewEvent, PhaseCompleted, RawJson, Timestamp};

/// The job and the turn of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TurnOfJob {
    job_seq: i64,
    turn: i64,
}

/// A checkpoint.
struct Added {
    of: TurnOfJob,
    done: Done<RawJson, RawJson>,
    /// True when an event reports the checkpoint.
    has_event: bool,
}

impl Added {
    /// Returns true when this event reports this checkpoint.
    fn is_reported_by(&self, of: TurnOfJob, said: &PhaseCompleted) -> bool {
        !self.has_event
            && self.of == of
            && usize::try_from(self.done.phase) == Ok(said.phase.index())
            && self.done.duration_ms == said.duration_ms
    }
}

struct NewMessage {
    of: TurnOfJob,
    seq: i64,
    message: Box<RawValue>,
    at: Timestamp,
}

enum Data {
    /// All that an event says.
    Whole(RawJson),
    /// The event's data beside the checkpoint with this place in the list.
    Beside(usize, RawJson),
}

struct Happening {
    of: TurnOfJob,
    name: EventName,
    data: Data,
    at: Timestamp,
}

/// The new entries of one stream.
struct Stream {
    seq: i64,
    /// The last event before.
    before: i64,
    checkpoints: Vec<Added>,
    messages: Vec<NewMessage>,
    events: Vec<Happening>,
}

/// A row that is being made.
struct Draft {
    of: TurnOfJob,
    last_event: i64,
    events: i64,
    names: String,
    last_message: i64,
    phase: i64,
    phases: i64,
    has_paid: bool,
    at: Timestamp,
    entries: Vec<JournalEntry<RawJson, RawJson>>,
    said: Vec<Said<Box<RawValue>>>,
}

/// Checkpoints, messages and events of many streams, in the order of each.
#[derive(Default)]
pub(in super::super) struct Journal {
    streams: Vec<Stream>,
    known: HashMap<i64, usize>,
}

impl Journal {
    /// The stream, whose last event was `before` when this transaction began to write to it.
    fn stream(&mut self, seq: i64, before: i64) -> &mut Stream {
        let next = self.streams.len();
        let at = *self.known.entry(seq).or_insert(next);
        if at == next {
            let (checkpoints, messages, events) = (Vec::new(), Vec::new(), Vec::new());
            self.streams.push(Stream { seq, before, checkpoints, messages, events });
        }
        &mut self.streams[at]
    }

    /// Adds event number `seq` of a stream. Events of a stream are added in the order of their numbers, and after the
    /// checkpoints that they are about.
    pub(in super::super) fn event(&mut self, stream: i64, seq: i64, job_seq: i64, event: &NewEvent) {
        let of = TurnOfJob { job_seq, turn: event.turn };
        let stream = self.stream(stream, seq - 1);
        let data = match &event.data {
            EventData::Phase(said)
                if let Some(place) =
                    stream.checkpoints.iter().position(|new| new.is_reported_by(of, said)) =>
            {
                let new = &mut stream.checkpoints[place];
                new.has_event = true;
                new.done.event_at = Some(event.at.0).filter(|at| Some(*at) != new.done.at);
                Data::Beside(place, said.more.clone())
            }
            data => Data::Whole(data.whole().into_owned()),
        };
        stream.events.push(Happening { of, name: event.name, data, at: event.at });
    }

    /// Adds an event that is a stream of its own, and about no job.
    pub(in super::super) fn lone(&mut self, stream: i64, body: &EventBody, at: Timestamp) {
        self.event(stream, 1, stream, &NewEvent::of(body, 0, at));
    }

    /// Adds a checkpoint to a stream that has `events` so far.
    pub(in super::super) fn checkpoint(
        &mut self,
        (stream, events): (i64, i64),
        job_seq: i64,
        checkpoint: &NewCheckpoint,
    ) {
        let of = TurnOfJob { job_seq, turn: checkpoint.turn };
        let done = Done {
            phase: i64::try_from(checkpoint.phase.index()).unwrap_or(i64::MAX),
            version: checkpoint.version,
            body: checkpoint.body.clone(),
            duration_ms: checkpoint.duration_ms,
            tokens_in: checkpoint.tokens_in,
            tokens_out: checkpoint.tokens_out,
            tokens_cached: checkpoint.spent.tokens_cached,
            cost: checkpoint.spent.cost,
            model: checkpoint.spent.model.clone(),
            at: Some(checkpoint.at.0),
            event: None,
            event_at: None,
        };
        self.stream(stream, events).checkpoints.push(Added { of, done, has_event: false });
    }

    /// Adds message number `seq` of turn `turn` to a stream that has `events` so far.
    pub(in super::super) fn message(
        &mut self,
        (stream, events): (i64, i64),
        (job_seq, turn): (i64, i64),
        seq: i64,
        message: &Message,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let message = to_raw_value(message).map_err(|error| StoreError::Database {
            action: "encode a message",
            message: error.to_string(),
        })?;
        let of = TurnOfJob { job_seq, turn };
        self.stream(stream, events).messages.push(NewMessage { of, seq, message, at });
        Ok(())
    }

    /// Adds the rows to what is written, and is empty again.
    pub(in super::super) fn flush(
        &mut self,
        session: &mut Session,
        writes: &mut Writes,
    ) -> Result<(), StoreError> {
        let mut rows = Vec::new();
        self.known.clear();
        for stream in take(&mut self.streams) {
            let seq = stream.seq;
            for draft in stream.drafts() {
                let commit = session.commit_id(draft.events > 0);
                rows.push(draft.row(commit, seq)?);
            }
        }
        writes.insert("write the journal", rows);
        Ok(())
    }
}

impl Stream {
    /// The rows: events first, because they order everything; checkpoints with their events, or else in a row of their turn;
    /// messages in the rows of their turns, in order.
    fn drafts(self) -> Vec<Draft> {
        let mut rows: Vec<Draft> = Vec::new();
        let (mut reported, mut others) = (Vec::new(), Vec::new());
        for Added { of, done, has_event } in self.checkpoints {
            if has_event {
                reported.push(Some(done));
            } else {
                reported.push(None);
                others.push((of, done));
            }
        }
        let mut last = self.before;
        for event in self.events {
            let (done, data) = match event.data {
                Data::Whole(data) => (None, data),
                Data::Beside(place, data) => (reported[place].take(), data),
            };
            let fits = |row: &Draft| row.of == event.of && done.as_ref().is_none_or(|done| row.takes(done));
            if !rows.last().is_some_and(fits) {
                rows.push(Draft::new(event.of, last));
            }
            last += 1;
            if let Some(row) = rows.last_mut() {
                row.event((last, event.name, event.at), done, data);
            }
        }
        for (of, done) in others {
            let free = rows.iter().position(|row: &Draft| row.of == of && row.takes(&done));
            let at = free.unwrap_or_else(|| {
                rows.push(Draft::new(of, last));
                rows.len() - 1
            });
            rows[at].checkpoint(done);
        }
        let mut from = 0;
        for new in self.messages {
            let follows = |row: &Draft| row.said.is_empty() || row.last_message + 1 == new.seq;
            let known = rows[from..].iter().position(|row| row.of == new.of && follows(row));
            match known {
                Some(at) => from += at,
                None => {
                    let before = rows.get(from).map_or(self.before, |row| row.last_event);
                    from = rows.len().min(from + 1);
                    rows.insert(from, Draft::new(new.of, before));
                }
            }
            rows[from].message(new);
        }
        rows
    }
}

impl Draft {
    fn new(of: TurnOfJob, last_event: i64) -> Self {
        Self {
            of,
            last_event,
            events: 0,
            names: String::new(),
            last_message: 0,
            phase: -1,
            phases: 0,
            has_paid: false,
            at: Timestamp(0),
            entries: Vec::new(),
            said: Vec::new(),
        }
    }

    /// Returns true when a checkpoint may join the others: it follows them, and at most one has paid for something.
    fn takes(&self, done: &Done<RawJson, RawJson>) -> bool {
        self.phases == 0 || (done.phase == self.phase + self.phases && !(self.has_paid && done.has_paid()))
    }

    fn event(
        &mut self,
        (seq, name, at): (i64, EventName, Timestamp),
        done: Option<Done<RawJson, RawJson>>,
        data: RawJson,
    ) {
        if self.events > 0 {
            self.names.push(',');
        }
        self.names.push_str(name.as_str());
        self.events += 1;
        match done {
            Some(done) => self.checkpoint(Done { event: Some(data), ..done }),
            None => self.entries.push(JournalEntry::Event(Happened { data, at: Some(at.0) })),
        }
        (self.last_event, self.at) = (seq, at);
    }

    fn checkpoint(&mut self, done: Done<RawJson, RawJson>) {
        if self.phases == 0 {
            self.phase = done.phase;
        }
        self.phases += 1;
        self.has_paid |= done.has_paid();
        if self.events == 0 {
            self.at = Timestamp(done.at.unwrap_or_default());
        }
        self.entries.push(JournalEntry::Phase(done));
    }

    fn message(&mut self, new: NewMessage) {
        if self.entries.is_empty() {
            self.at = new.at;
        }
        self.last_message = new.seq;
        self.said.push(Said { message: new.message, at: Some(new.at.0) });
    }

    fn row(mut self, commit_id: i64, stream: i64) -> Result<JournalRow, StoreError> {
        let paid = self.entries.iter().find_map(|entry| match entry {
            JournalEntry::Phase(done) if done.has_paid() => {
                let amounts = [done.tokens_in, done.tokens_out, done.tokens_cached, done.cost];
                Some((amounts, done.model.clone().zip(done.at)))
            }
            _ => None,
        });
        let ([tokens_in, tokens_out, tokens_cached, cost], model) = paid.unwrap_or_default();
        let (model, paid_at) = model.unzip();
        // Times that are the row's are not said again.
        let row_at = self.at.0;
        let entries = self.entries.iter_mut().map(|entry| match entry {
            JournalEntry::Phase(done) => &mut done.at,
            JournalEntry::Event(happened) => &mut happened.at,
        });
        let said = self.said.iter_mut().map(|said| &mut said.at);
        entries.chain(said).for_each(|at| *at = at.filter(|at| *at != row_at));
        let messages = i64::try_from(self.said.len()).unwrap_or(i64::MAX);
        let body = (!self.entries.is_empty()).then(|| as_json(&self.entries)).transpose()?;
        let said = (!self.said.is_empty()).then(|| as_json(&self.said)).transpose()?;
        Ok(JournalRow {
            commit_id,
            stream,
            last_event: self.last_event,
            last_message: self.last_message,
            events: self.events,
            messages,
            job_seq: self.of.job_seq,
            turn: self.of.turn,
            phase: self.phase,
            phases: self.phases,
            names: (self.events > 0).then_some(self.names),
            tokens_in,
            tokens_out,
            tokens_cached,
            cost,
            model,
            paid_at,
            at: self.at,
            body,
            said,
        })
    }
}
