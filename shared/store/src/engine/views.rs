//! Reads, on connections of their own.

use super::columns::Columns;
use super::job_filter::{listed, matching, of_tag, place_of};
use super::ops::reviews::between_breaks;
use super::rows::{self, Batch, EngagementRow, Fields, Inconsistency, JobRow, get, json};
use super::session::{Arg, Args, Reader, Row};
use super::statement::{decode_all, decode_readable};
use super::{Engine, journal, recall, record_gaps};
use crate::sql::{self, Text};
use crate::{
    AgentRecord, CheckpointRow, EngagementFilter, EventFilter, Gauges, HourlyCount, JobFilter,
    ListedEngagement, Page, ReviewFilter, StoreError, TaskFilter, TaskPlace, WorkerBeat,
};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::agent::guardrails::Side;
use turnstone_domain::budget::Budget;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::event::Event;
use turnstone_domain::guardrail_check::GuardrailCheck;
use turnstone_domain::message::StoredMessage;
use turnstone_domain::record::RecordGap;
use turnstone_domain::review::Review;
use turnstone_domain::session_state::{Scope, StateSnapshot};
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{
    AgentDefinition, CallId, EngagementId, Job, JobId, JobState, Phase, ReviewId, Timestamp,
};

/// Reads rows by single values.
pub(super) async fn all<T>(
    reader: &Reader,
    action: &'static str,
    text: &Text,
    args: &[Arg<'_>],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    decode_all(&reader.read(action, text, Args::Values(args)).await?, decode)
}

/// Reads rows of a list. One that cannot be read is named in the log, counted and left out.
pub(super) async fn many<T>(
    reader: &Reader,
    action: &'static str,
    text: &Text,
    args: &[Arg<'_>],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    Ok(decode_readable(action, &reader.read(action, text, Args::Values(args)).await?, decode))
}

/// Reads one row by single values.
pub(super) async fn one<T>(
    reader: &Reader,
    action: &'static str,
    text: &Text,
    args: &[Arg<'_>],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Option<T>, StoreError> {
    Ok(all(reader, action, text, args, decode).await?.pop())
}

/// Reads the rows of some keys.
pub(super) async fn by_seqs<T>(
    reader: &Reader,
    action: &'static str,
    text: &Text,
    seqs: &[i64],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    by_keys(reader, action, text, (seqs.to_vec(), &[]), decode).await
}

/// Rows by keys and single values.
pub(super) async fn by_keys<K: Batch, T>(
    reader: &Reader,
    action: &'static str,
    text: &Text,
    (keys, values): (Vec<K>, &[Arg<'_>]),
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    let keys = Args::Rows(Columns::of(keys, text)?, values);
    decode_all(&reader.read(action, text, keys).await?, decode)
}

/// As [`by_keys`], without the rows that cannot be read: see [`many`].
pub(super) async fn many_by_keys<K: Batch, T>(
    reader: &Reader,
    action: &'static str,
    text: &Text,
    (keys, values): (Vec<K>, &[Arg<'_>]),
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    let keys = Args::Rows(Columns::of(keys, text)?, values);
    Ok(decode_readable(action, &reader.read(action, text, keys).await?, decode))
}

/// The handle for reads of every kind.
#[derive(Clone)]
pub struct Views(pub(super) Arc<Engine>);

impl Views {
    /// Jobs in the order that is asked for, and how many match in total. They come without their tool journal; one that
    /// cannot be read whole is there with what can, and says so ([`Job::damaged`]).
    #[boxed]
    pub async fn jobs(&self, filter: &JobFilter, page: Page) -> Result<(Vec<Job>, u64), StoreError> {
        let readers = &self.0.readers;
        let counts = of_tag(filter, &sql::SELECT_JOB_COUNTS, &sql::SELECT_TAGGED_JOB_COUNTS);
        let values = matching(filter);
        let total = one(readers, "count jobs", counts, &values, |row| get::<i64>(row, "jobs"))
            .await?
            .unwrap_or_default();
        let after = place_of(readers, filter).await?;
        let (text, sort) = listed(filter, after);
        let part = [page.limit.into(), page.offset.into()];
        let values: Vec<Arg<'_>> = matching(filter).into_iter().chain(sort).chain(part).collect();
        let rows = many(readers, "list jobs", text, &values, JobRow::decode).await?;
        Ok((self.0.jobs_listed(rows).await?, total.unsigned_abs()))
    }

    /// Tasks, those that changed last first, with their places in the list; and how many match in total.
    #[boxed]
    pub async fn tasks(
        &self,
        filter: &TaskFilter,
        limit: u32,
    ) -> Result<(Vec<(JobId, TaskPlace)>, u64), StoreError> {
        let states: String = filter.states.iter().map(|state| format!("{},", state.as_str())).collect();
        let states = (!states.is_empty()).then(|| format!(",{states}"));
        let values = [
            filter.agent.as_str().into(),
            filter.tenant.as_deref().into(),
            filter.engagement.as_ref().map(EngagementId::as_str).into(),
            states.as_deref().into(),
            Arg::Int(filter.begun.map(i64::from)),
            filter.since.map_or(i64::MIN, |since| since.0).into(),
        ];
        let action = "count tasks";
        let total =
            one(&self.0.readers, action, &sql::SELECT_TASK_COUNT, &values, |row| get::<i64>(row, "tasks"));
        let total = total.await?.unwrap_or_default();
        let (before, position) =
            filter.after.map_or((i64::MAX, i64::MAX), |place| (place.changed_at.0, place.position));
        let values: Vec<Arg<'_>> =
            values.into_iter().chain([before.into(), position.into(), limit.into()]).collect();
        let found = many(&self.0.readers, "list tasks", &sql::SELECT_TASKS_OF_AGENT, &values, |row| {
            let place = TaskPlace { changed_at: get(row, "changed_at")?, position: get(row, "seq")? };
            Ok((JobId(get(row, "id")?), place))
        });
        Ok((found.await?, total.unsigned_abs()))
    }

    /// One engagement with the id of the job that works on its input, or of its latest one when all have ended.
    #[boxed]
    pub async fn engagement(
        &self,
        id: &EngagementId,
    ) -> Result<Option<(Engagement, AgentDefinition, JobId)>, StoreError> {
        self.engagement_of(id, None).await
    }

    /// [`Views::engagement`], if it has a job of this tenant; `None` means any tenant.
    #[boxed]
    pub async fn engagement_of(
        &self,
        id: &EngagementId,
        tenant: Option<&str>,
    ) -> Result<Option<(Engagement, AgentDefinition, JobId)>, StoreError> {
        let (action, values) = ("read an engagement", [id.as_str().into(), tenant.into()]);
        one(&self.0.readers, action, &sql::SELECT_ENGAGEMENT_BY_ID, &values, |row| {
            let engagement = EngagementRow::decode(row)?.engagement;
            Ok((engagement, json(row, "definition")?, JobId(get(row, "job_id")?)))
        })
        .await
    }

    /// Returns true when a job is the only one of its engagement.
    #[boxed]
    pub async fn is_only_input(&self, job: &JobId) -> Result<bool, StoreError> {
        let (action, values) = ("look for inputs", [job.as_str().into()]);
        let others =
            one(&self.0.readers, action, &sql::SELECT_OTHER_INPUTS, &values, |row| get::<i64>(row, "others"))
                .await?;
        Ok(others.is_none_or(|others| others == 0))
    }

    /// Engagements, newest first, at most `limit`.
    #[boxed]
    pub async fn engagements(
        &self,
        filter: &EngagementFilter,
        limit: u32,
    ) -> Result<Vec<ListedEngagement>, StoreError> {
        let values = [
            filter.agent.as_deref().into(),
            filter.since.map_or(0, |since| since.0).into(),
            filter.tenant.as_deref().into(),
            filter.after.unwrap_or(i64::MAX).into(),
            limit.into(),
        ];
        many(&self.0.readers, "list engagements", &sql::SELECT_ENGAGEMENTS, &values, rows::listed_engagement)
            .await
    }

    /// Messages after position `after`, oldest first; fewer than `limit` only when there are no more. A message whose
    /// retention is over keeps its position and is left out.
    #[boxed]
    pub async fn messages(
        &self,
        id: &EngagementId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        recall::messages_after(&self.0.readers, id, after, limit as usize).await
    }

    /// Checkpoints, oldest first.
    #[boxed]
    pub async fn checkpoints(&self, id: &EngagementId, page: Page) -> Result<Vec<CheckpointRow>, StoreError> {
        let values = [id.as_str().into(), page.limit.into(), page.offset.into()];
        let found = all(&self.0.readers, "read checkpoints", &sql::SELECT_CHECKPOINTS, &values, |row| {
            Ok((get::<i64>(row, "upto")? - get::<i64>(row, "phases")?, checkpoint_rows(row)?))
        })
        .await?;
        let first = found.first().map_or(0, |(before, _)| *before);
        let skipped = usize::try_from(i64::from(page.offset) - first).unwrap_or_default();
        let listed = found.into_iter().flat_map(|(_, done)| done);
        Ok(listed.skip(skipped).take(page.limit as usize).collect())
    }

    /// The turns and phases that the record of an engagement lacks; none in a sound one.
    #[boxed]
    pub async fn record_gaps(&self, id: &EngagementId) -> Result<Vec<RecordGap>, StoreError> {
        record_gaps::of_engagement(&self.0.readers, id).await
    }

    /// The newest checkpoints of one phase, newest first.
    #[boxed]
    pub async fn checkpoints_of(
        &self,
        id: &EngagementId,
        phase: Phase,
        limit: u32,
    ) -> Result<Vec<CheckpointRow>, StoreError> {
        let number = i64::try_from(phase.index()).unwrap_or(i64::MAX);
        let values = [id.as_str().into(), number.into(), limit.into()];
        let (action, text) = ("read checkpoints", &sql::SELECT_CHECKPOINTS_OF_PHASE);
        let found = all(&self.0.readers, action, text, &values, checkpoint_rows).await?;
        Ok(found.into_iter().flatten().filter(|row| row.checkpoint.phase == phase).collect())
    }

    /// The state of an agent's scope at `now`.
    #[boxed]
    pub async fn session_state(&self, scope: &Scope, now: Timestamp) -> Result<StateSnapshot, StoreError> {
        recall::state(&self.0.readers, scope, now).await
    }

    /// The whole tool journal, oldest first.
    #[boxed]
    pub async fn tool_calls(&self, id: &EngagementId) -> Result<Vec<ToolCall>, StoreError> {
        self.tool_calls_page(id, Page { limit: u32::MAX, offset: 0 }).await
    }

    /// A part of the tool journal, oldest first.
    #[boxed]
    pub async fn tool_calls_page(&self, id: &EngagementId, page: Page) -> Result<Vec<ToolCall>, StoreError> {
        let (action, values) =
            ("read the tool journal", [id.as_str().into(), page.limit.into(), page.offset.into()]);
        all(&self.0.readers, action, &sql::SELECT_TOOL_CALLS_OF_ENGAGEMENT, &values, rows::decode).await
    }

    /// Returns the calls whose outputs no endpoint exposes.
    #[boxed]
    pub async fn withheld_calls(&self, id: &EngagementId) -> Result<Vec<CallId>, StoreError> {
        let (action, values) = ("read the tool journal", [id.as_str().into()]);
        all(&self.0.readers, action, &sql::SELECT_WITHHELD_TOOL_CALLS, &values, |row| {
            Ok(CallId(get(row, "call_id")?))
        })
        .await
    }

    /// Returns the results of an engagement's guardrails, newest first.
    #[boxed]
    pub async fn guardrail_checks(
        &self,
        id: &EngagementId,
        limit: u32,
    ) -> Result<Vec<GuardrailCheck>, StoreError> {
        let values = [id.as_str().into(), limit.into()];
        let text = &sql::SELECT_NEWEST_GUARDRAIL_CHECKS;
        many(&self.0.readers, "read guardrail checks", text, &values, guardrail_check).await
    }

    /// The engagement's budget.
    #[boxed]
    pub async fn budget(&self, id: &EngagementId) -> Result<Budget, StoreError> {
        let (action, values) = ("read a budget", [id.as_str().into(), Arg::Text(None)]);
        let row = one(&self.0.readers, action, &sql::SELECT_ENGAGEMENT_BY_ID, &values, EngagementRow::decode)
            .await?;
        Ok(row.map(|row| row.budget).unwrap_or_default())
    }

    /// Events after position `after`, oldest first. Those of a row that cannot be read are left out.
    #[boxed]
    pub async fn events_after(
        &self,
        filter: &EventFilter,
        after: i64,
        limit: u32,
    ) -> Result<Vec<Event>, StoreError> {
        let (text, id) = stream_of(filter);
        let values = [id.into(), after.into(), limit.into()];
        let found = many(&self.0.readers, "read events", text, &values, events_of).await?;
        Ok(page_after(found, after, limit))
    }

    /// As [`Views::events_after`], for a record that has to be whole.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] names a row that cannot be read.
    #[boxed]
    pub async fn recorded_events(
        &self,
        filter: &EventFilter,
        after: i64,
        limit: u32,
    ) -> Result<Vec<Event>, StoreError> {
        let (text, id) = stream_of(filter);
        let values = [id.into(), after.into(), limit.into()];
        let found = all(&self.0.readers, "read events", text, &values, events_of).await?;
        Ok(page_after(found, after, limit))
    }

    /// Reviews, oldest first. Those that cannot be read are left out.
    #[boxed]
    pub async fn reviews(&self, filter: &ReviewFilter, page: Page) -> Result<Vec<Review>, StoreError> {
        Ok(decode_readable("list reviews", &self.review_rows(filter, page).await?, rows::decode))
    }

    /// As [`Views::reviews`], for a record that has to be whole.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] names a row that cannot be read.
    #[boxed]
    pub async fn recorded_reviews(
        &self,
        filter: &ReviewFilter,
        page: Page,
    ) -> Result<Vec<Review>, StoreError> {
        decode_all(&self.review_rows(filter, page).await?, rows::decode)
    }

    async fn review_rows(&self, filter: &ReviewFilter, page: Page) -> Result<Vec<Row>, StoreError> {
        let state = filter.state.map(|state| state.as_str());
        // No name has a line break, so such a name matches no reviewer.
        let member = filter.reviewer.as_ref().filter(|name| !name.contains('\n'));
        let member = member.map(|name| between_breaks(std::slice::from_ref(name)));
        let values = [
            state.into(),
            filter.reviewer.as_deref().into(),
            filter.tenant.as_deref().into(),
            page.limit.into(),
            page.offset.into(),
            filter.engagement.as_ref().map(EngagementId::as_str).into(),
            member.as_deref().into(),
            filter.after.as_ref().map(ReviewId::as_str).into(),
        ];
        self.0.readers.read("list reviews", &sql::SELECT_REVIEWS, Args::Values(&values)).await
    }

    /// One review.
    #[boxed]
    pub async fn review(&self, id: &ReviewId) -> Result<Option<Review>, StoreError> {
        self.review_of(id, None).await
    }

    /// [`Views::review`], if its job is this tenant's; `None` means any tenant.
    #[boxed]
    pub async fn review_of(&self, id: &ReviewId, tenant: Option<&str>) -> Result<Option<Review>, StoreError> {
        let values = [id.as_str().into(), tenant.into()];
        one(&self.0.readers, "read a review", &sql::SELECT_REVIEW_BY_ID, &values, rows::decode).await
    }

    /// The registered agents that serve a tenant, by name; `None` is the fleet, which uses all.
    #[boxed]
    pub async fn agents(&self, tenant: Option<&str>) -> Result<Vec<AgentRecord>, StoreError> {
        let (readers, text) = (&self.0.readers, &sql::SELECT_AGENTS);
        let mut agents = many(readers, "list agents", text, &[None.into()], agent).await?;
        agents.retain(|agent| agent.serves(tenant));
        Ok(agents)
    }

    /// One registered agent, if it serves this tenant; for all others it does not exist. `None` is the fleet.
    #[boxed]
    pub async fn agent(&self, name: &str, tenant: Option<&str>) -> Result<Option<AgentRecord>, StoreError> {
        let (readers, text) = (&self.0.readers, &sql::SELECT_AGENTS);
        let found = one(readers, "read an agent", text, &[name.into()], agent).await?;
        Ok(found.filter(|agent| agent.serves(tenant)))
    }

    /// Jobs per state of a queue; of all queues when `None`.
    #[boxed]
    pub async fn counts(&self, queue: Option<&str>) -> Result<Vec<(JobState, u64)>, StoreError> {
        self.counts_of(queue, None).await
    }

    /// [`Views::counts`] of the jobs of one tenant; `None` means any tenant.
    #[boxed]
    pub async fn counts_of(
        &self,
        queue: Option<&str>,
        tenant: Option<&str>,
    ) -> Result<Vec<(JobState, u64)>, StoreError> {
        many(
            &self.0.readers,
            "count jobs",
            &sql::SELECT_STATE_COUNTS,
            &[queue.into(), tenant.into()],
            |row| {
                let jobs: i64 = get(row, "jobs")?;
                Ok((get::<JobState>(row, "state")?, jobs.unsigned_abs()))
            },
        )
        .await
    }

    /// Jobs that have not ended, per queue and state.
    #[boxed]
    pub async fn counts_by_queue(&self) -> Result<Vec<(String, JobState, u64)>, StoreError> {
        many(&self.0.readers, "count jobs of queues", &sql::SELECT_QUEUE_STATE_COUNTS, &[], |row| {
            let jobs: i64 = get(row, "jobs")?;
            let state = get::<JobState>(row, "state")?;
            Ok((get(row, "queue")?, state, u64::try_from(jobs).unwrap_or_default()))
        })
        .await
    }

    /// Returns the numbers that operators watch and alert on.
    #[boxed]
    pub async fn gauges(&self) -> Result<Gauges, StoreError> {
        let (readers, count) = (&self.0.readers, |jobs: i64| u64::try_from(jobs).unwrap_or_default());
        let ended = many(readers, "count what ended", &sql::SELECT_ENDED_JOB_COUNTS, &[], |row| {
            let state = get::<JobState>(row, "state")?;
            Ok((get::<String>(row, "queue")?, state, get::<i64>(row, "jobs")?))
        });
        let ended = ended.await?.into_iter().map(|(queue, state, jobs)| (queue, state, count(jobs)));
        let oldest = many(readers, "look for what waits", &sql::SELECT_OLDEST_OF_QUEUES, &[], |row| {
            Ok((get(row, "queue")?, get(row, "run_at")?))
        });
        let open = one(readers, "count reviews", &sql::SELECT_OPEN_REVIEW_COUNT, &[], |row| {
            get::<i64>(row, "reviews")
        });
        Ok(Gauges {
            ended: ended.collect(),
            oldest: oldest.await?,
            open_reviews: count(open.await?.unwrap_or_default()),
            oldest_transaction: self.0.oldest_transaction().await?,
        })
    }

    /// Queues that have ever had a job or were named at a migration, by name.
    #[boxed]
    pub async fn queues(&self) -> Result<Vec<String>, StoreError> {
        many(&self.0.readers, "list queues", &sql::SELECT_QUEUES, &[], |row| get(row, "name")).await
    }

    /// Workers, by name, with those that fell silent without leaving.
    #[boxed]
    pub async fn workers(&self) -> Result<Vec<WorkerBeat>, StoreError> {
        many(&self.0.readers, "list workers", &sql::SELECT_WORKERS, &[None.into()], rows::decode).await
    }

    /// Ended jobs per hour, newest first, from `since` on.
    #[boxed]
    pub async fn statistics(&self, since: Timestamp) -> Result<Vec<HourlyCount>, StoreError> {
        let values = [since.0.into()];
        many(&self.0.readers, "read statistics", &sql::SELECT_STATISTICS, &values, rows::decode).await
    }

    /// Checks that the database answers, and that it takes the writes of this process.
    ///
    /// # Errors
    /// The error of the writes that fail at present, such as those to a full disk.
    #[boxed]
    pub async fn check(&self) -> Result<(), StoreError> {
        self.ping().await?;
        self.0.refusals.current().map_or(Ok(()), Err)
    }

    /// Returns an error when the database does not answer.
    #[boxed]
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.0.readers.read("answer a ping", &sql::SELECT_ONE, Args::Values(&[])).await.map(|_| ())
    }
}

/// Returns the events of these rows after position `after`, at most `limit`.
fn page_after(rows: Vec<Vec<Event>>, after: i64, limit: u32) -> Vec<Event> {
    rows.into_iter().flatten().filter(|event| event.seq > after).take(limit as usize).collect()
}

/// The statement that reads a stream of events, and whose it is.
pub(super) fn stream_of(filter: &EventFilter) -> (&'static Text, &str) {
    match filter {
        EventFilter::Engagement(id) => (&sql::SELECT_EVENTS_OF_ENGAGEMENT, id.as_str()),
        EventFilter::Job(id) => (&sql::SELECT_EVENTS_OF_JOB, id.as_str()),
    }
}

fn checkpoint_rows(row: &impl Fields) -> Result<Vec<CheckpointRow>, Inconsistency> {
    let job_id = JobId(get(row, "job_id")?);
    let done = journal::checkpoints(row)?.into_iter();
    Ok(done.map(|checkpoint| CheckpointRow { job_id: job_id.clone(), checkpoint }).collect())
}

fn events_of(row: &impl Fields) -> Result<Vec<Event>, Inconsistency> {
    let job_id = JobId(get(row, "job_id")?);
    let engagement_id: Option<EngagementId> = get::<Option<String>>(row, "engagement_id")?.map(Into::into);
    let reported = journal::events(row)?.into_iter();
    let event = |journal::JournalEvent { seq, name, turn, data, at }| {
        let (job_id, engagement_id) = (job_id.clone(), engagement_id.clone());
        Event { seq, name, job_id, engagement_id, turn, data, at }
    };
    Ok(reported.map(event).collect())
}

fn agent(row: &impl Fields) -> Result<AgentRecord, Inconsistency> {
    Ok(AgentRecord {
        definition: json(row, "definition")?,
        source: get(row, "source")?,
        updated_at: get(row, "updated_at")?,
        tenants: get(row, "tenants")?,
    })
}

fn guardrail_check(row: &impl Fields) -> Result<GuardrailCheck, Inconsistency> {
    let id: String = get(row, "id")?;
    let call_id = id.rsplit_once('#').map_or(id.as_str(), |(call, _)| call);
    Ok(GuardrailCheck {
        call_id: call_id.into(),
        turn: get(row, "turn")?,
        side: get::<Side>(row, "side")?,
        tool: get(row, "tool")?,
        passed: get(row, "passed")?,
        asked: json(row, "content")?,
        at: get(row, "created_at")?,
    })
}
