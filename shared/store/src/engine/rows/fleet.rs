//! Rows of the fleet: queues and their limits, workflows, cron entries, webhooks, workers, keys.

use super::{Fields, Inconsistency, declare, get};
use crate::{Directive, HourlyCount, ServerKey, WorkerBeat, WorkerKind, WorkerState};
use turnstone_domain::cron::{CronEntry, Missed, Outcome, Overlap};
use turnstone_domain::schema::{Mode, RegisteredSchema};
use turnstone_domain::webhook::{Delivery, DeliveryState, SigningSecret, Webhook, WebhookFilter};
use turnstone_domain::workflow::{StepRole, StepState, WorkflowKind, WorkflowState};
use turnstone_domain::{JobId, JobState, RawObject, Timestamp};

declare! {
    /// The use of a queue by a claim.
    struct QueueUse {
        name: String,
        pass: i64,
        claims: i64,
        window_at: Timestamp,
        started: i64,
        next_at: Timestamp,
        opens_at: Option<Timestamp>,
    }

    /// The virtual time of a pool.
    struct PoolPass {
        name: String,
        pass: i64,
    }

    /// A queue of a pool.
    struct PoolMember {
        name: String,
        pool: String,
        weight: i64,
        pass: i64,
    }

    /// A limit that a job names; `asked` is a text of JSON.
    struct LimitRow {
        name: String,
        asked: Option<String>,
        concurrency: Option<i64>,
        rate: Option<i64>,
        period_ms: Option<i64>,
        throttle_ms: Option<i64>,
    }

    /// The use of a limit by a claim.
    struct LimitUse {
        name: String,
        window_at: Timestamp,
        started: i64,
        next_at: Timestamp,
        booked_at: Timestamp,
        waiting: bool,
        opens_at: Option<Timestamp>,
    }

    /// The use of a tenant's rate.
    struct TenantUse {
        tenant: String,
        window_at: Timestamp,
        enqueued: i64,
    }

    /// A tenant, or none, and an agent, which pay together.
    #[derive(PartialEq, Eq, Hash)]
    struct Payer {
        tenant: String,
        agent: String,
    }

    /// A breaker to be added.
    struct NewBreaker {
        name: String,
        release_at: Option<Timestamp>,
        now: Timestamp,
    }

    /// A job and its queue, before they are pushed.
    struct PushedJob {
        id: JobId,
        queue: String,
    }

    /// How many jobs are pushed into a queue.
    struct PushedCount {
        queue: String,
        jobs: i64,
    }

    /// Jobs that are alike, in a state and accepted after a time.
    struct AlikeKey {
        unique_key: String,
        state: JobState,
        after: i64,
    }

    /// Jobs of a queue that ended in a state before a time.
    struct EndedBefore {
        queue: String,
        state: JobState,
        before: Timestamp,
    }

    /// A workflow.
    #[derive(Clone)]
    struct WorkflowRow into workflows [id] {
        seq: i64,
        id: String,
        tenant: Option<String>,
        kind: WorkflowKind,
        name: Option<String>,
        state: WorkflowState,
        members: i64,
        ended: i64,
        succeeded: i64,
        events: i64,
        created_at: Timestamp,
        ended_at: Option<Timestamp>,
        /// The queues of its jobs, sorted.
        queues: Option<Vec<String>>,
    }

    /// A step. `job` is a text of JSON, and empty where it is not needed.
    struct StepRow in workflow_steps [workflow_seq, step] {
        workflow_seq: i64,
        step: i64,
        role: StepRole,
        state: StepState,
        needs: Vec<i64>,
        next: Vec<i64>,
        job: String => sealed,
    }

    /// A step of a new workflow; `needs`, `next` and `job` are texts of JSON.
    struct NewStepRow into workflow_steps [workflow_seq, step] {
        workflow_seq: i64,
        step: i64,
        name: Option<String>,
        role: StepRole,
        needs: String,
        next: String,
        waits: i64,
        state: StepState,
        job_id: JobId,
        job_type: String,
        job: String,
    }

    /// The place of a step.
    #[derive(Clone, Copy)]
    struct StepKey {
        workflow_seq: i64,
        step: i64,
    }

    /// A step that waits for fewer others than before.
    struct StepMet {
        workflow_seq: i64,
        step: i64,
        met: i64,
    }

    /// The new state of a step.
    struct StepMove {
        workflow_seq: i64,
        step: i64,
        state: StepState,
    }

    for CronEntry in crons [tenant, name] {
        name: String,
        tenant: Option<String> => with owner,
        expression: String,
        timezone: String,
        overlap: Overlap => from overlap_policy,
        missed: Missed => from missed_policy,
        enabled: bool,
        template: String,
        description: Option<String>,
        created_at: Timestamp,
        updated_at: Timestamp,
        next_run_at: Option<Timestamp>,
        last_run_at: Option<Timestamp>,
        last_job_id: Option<JobId>,
        runs: i64,
        last_error: Option<String>,
    }

    /// The limits of a tenant.
    struct TenantLimitsRow in tenant_limits [tenant] {
        tenant: String,
        max_concurrency: Option<i64>,
        max_queue_depth: Option<i64>,
        max_scheduled: Option<i64>,
        enqueue_rate: Option<i64>,
        enqueue_period_ms: Option<i64>,
        reason: Option<String> => sealed,
        updated_at: Timestamp,
    }

    /// A cron entry as it is written: NULL leaves a column as it is.
    struct CronRow in crons [tenant, name] {
        tenant: String,
        name: String,
        expression: Option<String>,
        timezone: Option<String>,
        overlap_policy: Option<Overlap>,
        missed_policy: Option<Missed>,
        enabled: Option<bool>,
        template: Option<String> => sealed,
        description: Option<String> => sealed,
        moves: bool,
        next_run_at: Option<Timestamp>,
        updated_at: Timestamp,
    }

    /// Jobs that a cron entry made, and why its latest occurrence made none.
    struct CronCount in crons [tenant, name] {
        tenant: String,
        name: String,
        made: i64,
        last_job_id: Option<JobId>,
        at: Timestamp,
        last_error: Option<String> => sealed,
    }

    /// The outcome of an occurrence.
    struct CronRunRow into cron_runs [id] {
        id: String,
        tenant: String,
        name: String,
        scheduled_at: Timestamp,
        at: Timestamp,
        outcome: Outcome,
        job_id: Option<JobId>,
        message: Option<String> => sealed,
    }

    for Webhook in webhooks [id] {
        id: String,
        tenant: Option<String>,
        url: String,
        events: Vec<String>,
        filter: WebhookFilter,
        metadata: RawObject,
        secret: SigningSecret,
        old_secret: Option<(SigningSecret, Timestamp)> => with old_secret,
        active: bool,
        since: i64,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// A webhook as it is written.
    struct WebhookRow in webhooks [id] {
        id: String,
        tenant: Option<String>,
        url: String => sealed,
        events: Vec<String>,
        filter: WebhookFilter,
        metadata: RawObject => sealed,
        secret: SigningSecret => sealed,
        old_secret: Option<SigningSecret> => sealed,
        old_until: Option<Timestamp>,
        active: bool,
        updated_at: Timestamp,
    }

    for Delivery in deliveries [id] {
        id: String,
        webhook_id: String,
        event_id: String,
        event: String,
        body: String => sealed,
        state: DeliveryState,
        attempts: i64,
        next_at: Option<Timestamp>,
        status: Option<i64>,
        error: Option<String>,
        created_at: Timestamp,
        ended_at: Option<Timestamp>,
    }

    for WorkerBeat in workers [name] {
        name: String,
        instance: String,
        host: String,
        pid: i64,
        version: String,
        queues: Vec<String>,
        slots: i64,
        busy: i64,
        state: WorkerState,
        started_at: Timestamp,
        seen_at: Timestamp,
        kind: WorkerKind,
        directive: Option<Directive> => with directive,
    }

    for ServerKey into server_keys [name] {
        name: String,
        body: String => sealed,
        created_at: Timestamp,
    }

    for HourlyCount in statistics [hour, queue, state] {
        hour: Timestamp,
        queue: String,
        state: JobState,
        jobs: i64,
        tokens: i64,
        took_ms: i64,
    }

    /// A credential for the calls of a tool.
    struct CredentialRow into credentials [kind, subject, tool, header] {
        kind: String,
        subject: String,
        tool: String,
        header: String,
        prefix: String,
        form: String,
        content: String => sealed,
        updated_at: Timestamp,
    }

    for RegisteredSchema into job_schemas [job_type, version] {
        job_type: String,
        version: i64,
        mode: Mode,
        body: String,
        created_at: Timestamp,
    }

    /// The answer to the request under an idempotency key.
    struct KeyAnswer in idempotency_keys [name] {
        name: String,
        request: String,
        answer: String => sealed,
    }

    /// The jobs and the answer of a push under an idempotency key.
    struct KeyPush {
        name: String,
        pushed: String,
        answer: Option<String>,
    }
}

fn owner(row: &impl Fields) -> Result<Option<String>, Inconsistency> {
    Ok(Some(get::<String>(row, "tenant")?).filter(|tenant| !tenant.is_empty()))
}

fn old_secret(row: &impl Fields) -> Result<Option<(SigningSecret, Timestamp)>, Inconsistency> {
    Ok(get::<Option<SigningSecret>>(row, "old_secret")?.zip(get(row, "old_until")?))
}

/// Returns the directive of an operator for a worker.
pub(in super::super) fn directive(row: &impl Fields) -> Result<Option<Directive>, Inconsistency> {
    Ok(get::<Option<&str>>(row, "directive")?.and_then(Directive::parse))
}

impl WebhookRow {
    pub(in super::super) fn of(webhook: &Webhook) -> Self {
        let webhook = webhook.clone();
        let (old_secret, old_until) = webhook.old_secret.unzip();
        Self {
            id: webhook.id,
            tenant: webhook.tenant,
            url: webhook.url,
            events: webhook.events,
            filter: webhook.filter,
            metadata: webhook.metadata,
            secret: webhook.secret,
            old_secret,
            old_until,
            active: webhook.active,
            updated_at: webhook.updated_at,
        }
    }
}
