-- The baseline: the whole schema of an SQLite database.
--
-- Times are milliseconds since the epoch, bound by the caller. Ids are UUIDv7 text made in Rust; `seq` columns are small
-- integers that only the store sees. JSON is opaque here: whatever a statement filters on is a column. There are no
-- foreign keys.
--
-- migrations/postgres has the same tables and columns in the same order. What differs:
-- * Numbers: INTEGER here, BIGINT there. One writer enqueues, so the next `seq` of a job is the highest one plus one.
--   PostgreSQL has sequences and identity columns.
-- * WITHOUT ROWID is SQLite's: such a table is stored in the order of its key.
-- * `new_commits` and `feed_order` stay as they are: the id of a commit is its number.
-- * Retention deletes rows here. PostgreSQL partitions history and drops it by the million.

-- Jobs and queues

-- One row per queue that was named or ever had a job: its bounds, its limits, and its place in a pool.
CREATE TABLE queues (
    name              TEXT    PRIMARY KEY,
    paused            INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    config            TEXT,                            -- JSON: bounds, limits, retention, attestation
    pool              TEXT,
    weight            INTEGER NOT NULL DEFAULT 1 CHECK (weight > 0),
    pass              INTEGER NOT NULL DEFAULT 0,      -- virtual time in its pool
    created_at        INTEGER NOT NULL DEFAULT 0,
    claims            INTEGER NOT NULL DEFAULT 0,      -- since the queue joined its pool
    max_depth         INTEGER,                         -- waiting jobs, at most
    max_bytes         INTEGER,                         -- of their payloads together, at most
    warn_at           INTEGER,                         -- waiting jobs from which enqueueing returns a warning
    concurrency       INTEGER,                         -- active jobs, at most
    rate              INTEGER,                         -- starts per period
    period_ms         INTEGER,
    throttle_ms       INTEGER,                         -- least time between two starts
    window_at         INTEGER NOT NULL DEFAULT 0,
    started           INTEGER NOT NULL DEFAULT 0,      -- starts since window_at
    next_at           INTEGER NOT NULL DEFAULT 0,      -- no job starts before
    opens_at          INTEGER,                         -- when to notify the workers that wait
    keep_completed_ms INTEGER,                         -- retention of ended jobs; NULL: the fleet's
    keep_discarded_ms INTEGER,
    keep_cancelled_ms INTEGER
) WITHOUT ROWID;
-- The queues that exist without a job.
INSERT INTO queues (name) VALUES ('default'), ('ai-agents');

-- One row per pool: queues that share workers by weight.
CREATE TABLE pools (
    name       TEXT    PRIMARY KEY,
    strategy   TEXT    NOT NULL CHECK (strategy IN ('weighted', 'round_robin', 'strict')),
    config     TEXT    NOT NULL,                       -- JSON: as the client sent it
    pass       INTEGER NOT NULL DEFAULT 0,             -- virtual time of the pool
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- One row per job, narrow: everything that changes while the job lives. What the client sent is in job_envelopes.
CREATE TABLE jobs (
    seq              INTEGER PRIMARY KEY,              -- order of acceptance: first in, first out
    id               TEXT    NOT NULL UNIQUE,
    job_type         TEXT    NOT NULL,
    kind             TEXT    NOT NULL CHECK (kind IN ('agent', 'plain')),
    queue            TEXT    NOT NULL,
    state            TEXT    NOT NULL CHECK (state IN ('scheduled', 'available', 'pending', 'active',
                                                       'completed', 'retryable', 'cancelled', 'discarded')),
    priority         INTEGER NOT NULL CHECK (priority BETWEEN -100 AND 100),
    attempt          INTEGER NOT NULL DEFAULT 0,       -- claims; never falls
    failures         INTEGER NOT NULL DEFAULT 0,       -- what the retry policy counts
    lapses           INTEGER NOT NULL DEFAULT 0,       -- leases that ran out since the last checkpoint
    created_at       INTEGER NOT NULL,
    run_at           INTEGER NOT NULL,
    started_at       INTEGER,
    ended_at         INTEGER,
    expires_at       INTEGER,
    timeout_ms       INTEGER,
    engagement_seq   INTEGER,                          -- NULL for a plain job
    stream           INTEGER NOT NULL,                 -- seq of the first job of its event stream
    position         TEXT,                             -- JSON: where an agent job stands between turns
    reserved         INTEGER NOT NULL DEFAULT 0,       -- this job's share of its budget's reservations
    tokens_used      INTEGER NOT NULL DEFAULT 0,
    events           INTEGER NOT NULL DEFAULT 0,       -- events of a plain job's stream; of an agent's: 1 while its stream does not tell its start
    worker_id        TEXT,
    lease_token      TEXT,
    lease_expires_at INTEGER,
    retry_delay_ms   INTEGER,
    claimed_at       INTEGER,                          -- when the current attempt began: timeouts count from here
    tenant           TEXT,                             -- NULL: the job belongs to no tenant
    visibility_ms    INTEGER,                          -- how long each lease of this job lasts
    lease_ms         INTEGER,                          -- how long the current lease lasts from each heartbeat
    limit_key        TEXT,                             -- see rate_keys
    unique_key       TEXT,                             -- fingerprint of a job that asks to be unique
    workflow_seq     INTEGER,
    workflow_step    INTEGER,
    cron_name        TEXT,
    held             INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1)),         -- paused: no worker claims it
    calls_again      INTEGER NOT NULL DEFAULT 0,       -- how often a retry of one of its calls was requested
    dead_letter      INTEGER NOT NULL DEFAULT 0 CHECK (dead_letter IN (0, 1)),  -- kept for a manual retry when discarded
    runtime_tags     TEXT,                             -- JSON: what a worker's runtime must offer
    set_aside        INTEGER NOT NULL DEFAULT 0 CHECK (set_aside IN (0, 1)),    -- its limit is used up: claims skip it
    on_limit         TEXT    CHECK (on_limit IN ('reschedule', 'drop')),        -- NULL: the job waits
    CHECK (attempt >= 0 AND failures >= 0 AND reserved >= 0 AND tokens_used >= 0),
    CHECK ((kind = 'agent') = (engagement_seq IS NOT NULL)),
    CHECK ((state = 'active') = (lease_token IS NOT NULL)),
    CHECK ((state = 'active') = (lease_expires_at IS NOT NULL)),
    CHECK ((state IN ('completed', 'cancelled', 'discarded')) = (ended_at IS NOT NULL)),
    CHECK (state = 'active' OR reserved = 0)
);
-- Jobs whose ids clients chose for their tenants (`<id>~<tenant>`), by the ids alone: for requests without a tenant.
CREATE INDEX jobs_chosen ON jobs (substr(id, 1, 36)) WHERE substr(id, 37, 1) = '~';
-- What a claim reads: neither paused jobs nor those whose limit is used up.
CREATE INDEX jobs_available ON jobs (kind, queue, priority DESC, seq)
    WHERE state = 'available' AND held = 0 AND set_aside = 0;
CREATE INDEX jobs_limited ON jobs (limit_key, queue, kind, priority DESC, seq)
    WHERE state = 'available' AND limit_key IS NOT NULL;
CREATE INDEX jobs_paused ON jobs (queue) WHERE state = 'available' AND held = 1;
CREATE INDEX jobs_waiting ON jobs (run_at) WHERE state IN ('scheduled', 'retryable');
CREATE INDEX jobs_waiting_in ON jobs (queue, run_at) WHERE state IN ('scheduled', 'retryable');
CREATE INDEX jobs_active ON jobs (seq) WHERE state = 'active';
CREATE INDEX jobs_timed ON jobs (seq) WHERE state = 'active' AND timeout_ms IS NOT NULL;
CREATE INDEX jobs_running ON jobs (queue) WHERE state = 'active';
CREATE INDEX jobs_started ON jobs (limit_key) WHERE state = 'active' AND limit_key IS NOT NULL;
CREATE INDEX jobs_expiring ON jobs (expires_at) WHERE expires_at IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_ended_in ON jobs (queue, state, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (seq) WHERE state = 'discarded' AND dead_letter = 1;
CREATE INDEX jobs_engagement ON jobs (engagement_seq) WHERE engagement_seq IS NOT NULL;
CREATE INDEX jobs_unique ON jobs (unique_key, state, created_at) WHERE unique_key IS NOT NULL;
CREATE INDEX jobs_workflow ON jobs (workflow_seq) WHERE workflow_seq IS NOT NULL;
CREATE INDEX jobs_cron ON jobs (cron_name) WHERE cron_name IS NOT NULL AND ended_at IS NULL;
CREATE INDEX jobs_tenant ON jobs (tenant, seq) WHERE tenant IS NOT NULL;
CREATE INDEX jobs_tenant_living ON jobs (tenant, state) WHERE tenant IS NOT NULL AND ended_at IS NULL;
-- A limit that jobs name is deleted with the last job that names it.
CREATE INDEX jobs_of_limit ON jobs (limit_key) WHERE limit_key IS NOT NULL;

-- One row per job: what the client sent, as sent. Written once.
CREATE TABLE job_envelopes (
    job_seq        INTEGER PRIMARY KEY,
    retry          TEXT    NOT NULL,
    args           TEXT    NOT NULL,
    meta           TEXT    NOT NULL,
    options        TEXT    NOT NULL,
    extra          TEXT    NOT NULL,
    parent_results TEXT                                -- JSON list: results of the predecessors of a workflow's step
);

-- One row per job that ended with a result. Written once.
CREATE TABLE job_results (
    job_seq INTEGER PRIMARY KEY,
    result  TEXT    NOT NULL
);

-- One row per failure of a job.
CREATE TABLE job_errors (
    job_seq INTEGER NOT NULL,
    failure INTEGER NOT NULL,                          -- 1-based; a job that the scheduler ended has one, too
    attempt INTEGER NOT NULL,
    error   TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    code    TEXT    NOT NULL,                          -- of the error; in the clear, because lists filter by it
    PRIMARY KEY (job_seq, failure)
) WITHOUT ROWID;

-- One row per tag of a job that has tags. Tags are stored as they were sent, even when payloads are encrypted.
CREATE TABLE job_tags (
    tag     TEXT    NOT NULL,
    job_seq INTEGER NOT NULL,
    PRIMARY KEY (tag, job_seq)
) WITHOUT ROWID;
CREATE INDEX job_tags_job ON job_tags (job_seq);

-- One row per batch that was closed: the jobs with a tag, of a tenant or of all.
CREATE TABLE batches (
    tag       TEXT    NOT NULL,
    tenant    TEXT    NOT NULL,                        -- empty: the jobs of all tenants
    closed_at INTEGER NOT NULL,
    ended_at  INTEGER,
    event_seq INTEGER,                                 -- the stream of the event of its end
    PRIMARY KEY (tag, tenant)
) WITHOUT ROWID;
CREATE INDEX batches_open ON batches (closed_at) WHERE ended_at IS NULL;
CREATE INDEX batches_event ON batches (event_seq) WHERE event_seq IS NOT NULL;

-- One row per job with a state that its worker over HTTP saved (OJS durable execution).
CREATE TABLE saved_states (
    job_seq  INTEGER PRIMARY KEY,
    state    TEXT    NOT NULL,
    sequence INTEGER NOT NULL,
    at       INTEGER NOT NULL
);

-- One row per job with a progress that its worker over HTTP reported (OJS progress).
CREATE TABLE progress (
    job_seq    INTEGER PRIMARY KEY,
    millionths INTEGER NOT NULL CHECK (millionths BETWEEN 0 AND 1000000),
    message    TEXT,
    data       TEXT,
    at         INTEGER NOT NULL
);

-- Agents and engagements

-- One row per agent definition, by content: engagements of the same agent share it. It is deleted with the last
-- engagement, input or registered agent that refers to it.
CREATE TABLE agent_definitions (
    digest     TEXT PRIMARY KEY,
    definition TEXT NOT NULL
) WITHOUT ROWID;

-- One row per registered agent.
CREATE TABLE agents (
    name          TEXT    PRIMARY KEY,
    digest        TEXT    NOT NULL,                    -- of its definition
    source        TEXT    NOT NULL,
    updated_at    INTEGER NOT NULL,
    source_digest TEXT,                                -- sources are compared by it: two sealed texts are never equal
    tenants       TEXT                                 -- JSON array of the tenants that it serves; NULL: all
) WITHOUT ROWID;

-- One row per definition with which an agent was registered since its name was last removed. An imported engagement with
-- an equal definition may run.
CREATE TABLE registered_digests (
    name   TEXT NOT NULL,
    digest TEXT NOT NULL,                              -- of the definition without secrets and marks of this server
    PRIMARY KEY (name, digest)
) WITHOUT ROWID;

-- One row per engagement: a conversation of an agent. It takes the number of its first job. What its turns change is in totals.
CREATE TABLE engagements (
    seq          INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    agent_name   TEXT    NOT NULL,
    digest       TEXT    NOT NULL,                     -- of the definition that the latest input runs with
    user_id      TEXT    NOT NULL,
    user_email   TEXT,
    started_at   INTEGER NOT NULL,
    budget_seq   INTEGER NOT NULL,                     -- a tree of engagements shares the budget of its root
    depth        INTEGER NOT NULL DEFAULT 0 CHECK (depth BETWEEN 0 AND 10),  -- 0: no delegate
    parent_seq   INTEGER,                              -- the job that it works for
    limited_by   TEXT,                                 -- names of its own budgets `engagement/ID` within the tree, the highest
                                                       -- first, with spaces between them; its delegates are charged to them, too
    retention_ms INTEGER,                              -- how long its document keeps it after its end; NULL: not stated, or over
    imported_at  INTEGER                               -- when it came from another server: retention counts from here
);
CREATE INDEX engagements_agent ON engagements (agent_name, seq);
CREATE INDEX engagements_budget ON engagements (budget_seq);
CREATE INDEX engagements_digest ON engagements (digest);
CREATE INDEX engagements_retained ON engagements (seq) WHERE retention_ms IS NOT NULL;

-- One row per input of an engagement that has several. The engagement's own agent is that of the input that runs, or
-- ran last.
CREATE TABLE input_definitions (
    job_seq      INTEGER PRIMARY KEY,
    digest       TEXT    NOT NULL,
    retention_ms INTEGER                               -- how long that agent's document keeps the conversation
);
CREATE INDEX input_definitions_digest ON input_definitions (digest);

-- Totals and budgets, in tokens and in money (millionths of a currency)

-- One row per engagement, with the number of its first job: what its turns count, and its budget. A turn changes this row
-- and no other of its engagement's. Engagements of a tree spend from the row of their root; one that its agent limits within
-- the tree has a budget of its own, with a name.
-- One row per shared budget, too (of the fleet, a tenant, an agent, a model; altogether or per day): it counts nothing, and
-- takes a number below zero, so that it never meets the number of a job; budget_rules has its limits.
-- A reservation never exceeds what is left of the limit. What is settled may, by what calls used above their reservations.
CREATE TABLE totals (
    seq            INTEGER PRIMARY KEY,
    turns          INTEGER NOT NULL DEFAULT 0,         -- complete turns
    events         INTEGER NOT NULL DEFAULT 0,         -- events of its stream
    messages       INTEGER NOT NULL DEFAULT 0,
    writes         INTEGER NOT NULL DEFAULT 0,         -- writes of its record under leases: each names the one that it follows
    turn           INTEGER NOT NULL DEFAULT 0,         -- of the last checkpoint; 0 without one
    phase          INTEGER NOT NULL DEFAULT -1,        -- of the last checkpoint; -1 without one
    inputs         INTEGER NOT NULL DEFAULT 1,         -- jobs that ever carried an input into it
    children       INTEGER NOT NULL DEFAULT 0,         -- engagements that ever worked for it
    tree_jobs      INTEGER NOT NULL DEFAULT 1,         -- of a root: the jobs that its tree ever had, each counted once
    token_limit    INTEGER,                            -- NULL is unlimited
    settled        INTEGER NOT NULL DEFAULT 0,
    reserved       INTEGER NOT NULL DEFAULT 0,
    scope          TEXT    NOT NULL DEFAULT 'engagement'
                   CHECK (scope IN ('engagement', 'fleet', 'tenant', 'agent', 'model')),
    name           TEXT,
    day            INTEGER,                            -- since the epoch, UTC; -1 is all days
    currency       TEXT,
    money_limit    INTEGER,                            -- NULL is unlimited
    money_settled  INTEGER NOT NULL DEFAULT 0 CHECK (money_settled >= 0),
    money_reserved INTEGER NOT NULL DEFAULT 0,
    on_exceed      TEXT    CHECK (on_exceed IN ('retry', 'park', 'fail')),
    warn_at        INTEGER CHECK (warn_at BETWEEN 1 AND 100),
    CHECK (settled >= 0 AND reserved >= 0),
    CHECK ((name IS NULL) = (scope = 'engagement')),
    CHECK ((day IS NULL) = (name IS NULL)),
    CHECK (money_reserved >= 0)
);
CREATE UNIQUE INDEX totals_named ON totals (name, day) WHERE name IS NOT NULL;

-- One row per shared budget that is configured: whom it limits, and to how much. A NULL part (tenant, agent, model) matches all.
CREATE TABLE budget_rules (
    name           TEXT    PRIMARY KEY,
    tenant         TEXT,
    agent          TEXT,
    model          TEXT,
    tokens         INTEGER,
    tokens_per_day INTEGER,
    cost           INTEGER,
    cost_per_day   INTEGER,
    currency       TEXT    NOT NULL,
    on_exceed      TEXT    CHECK (on_exceed IN ('retry', 'park', 'fail')),
    warn_at        INTEGER CHECK (warn_at BETWEEN 1 AND 100),
    given          TEXT,                               -- what the configuration or a manifest said last
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    CHECK (coalesce(tokens, tokens_per_day, cost, cost_per_day) IS NOT NULL)
) WITHOUT ROWID;

-- One row per job and budget: what the job has reserved beyond the tokens of its engagement's budget.
CREATE TABLE reservations (
    job_seq    INTEGER NOT NULL,
    budget_seq INTEGER NOT NULL,
    tokens     INTEGER NOT NULL CHECK (tokens >= 0),
    money      INTEGER NOT NULL CHECK (money >= 0),
    PRIMARY KEY (job_seq, budget_seq)
) WITHOUT ROWID;

-- One row per job whose last call did not fit into a budget. It counts only while its job has not been claimed since.
CREATE TABLE budget_waits (
    job_seq    INTEGER PRIMARY KEY,
    budget_seq INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    due_at     INTEGER                                 -- when the job may resume; NULL until the budget is raised
);
CREATE INDEX budget_waits_budget ON budget_waits (budget_seq);
CREATE INDEX budget_waits_due ON budget_waits (due_at) WHERE due_at IS NOT NULL;

-- Turns

-- One row per turn and write of a stream: checkpoints, messages and events. A stream is an engagement's, a plain job's or a
-- workflow's; its number is that of the engagement's first job, of the job, or of the workflow. Append-only, but for the
-- messages of conversations that are kept no longer.
CREATE TABLE journal (
    commit_id     INTEGER NOT NULL,                    -- the commit that wrote it
    stream        INTEGER NOT NULL,
    last_event    INTEGER NOT NULL,                    -- the number of its last event; without one, of the last event before it
    last_message  INTEGER NOT NULL DEFAULT 0,          -- the number of its last message; 0 without one
    events        INTEGER NOT NULL DEFAULT 0,          -- how many it has
    messages      INTEGER NOT NULL DEFAULT 0,
    job_seq       INTEGER NOT NULL,
    turn          INTEGER NOT NULL,                    -- 0 outside of turns
    phase         INTEGER NOT NULL DEFAULT -1 CHECK (phase BETWEEN -1 AND 6),  -- of its first checkpoint, INIT to EMIT; -1 without one
    phases        INTEGER NOT NULL DEFAULT 0,          -- how many checkpoints it has: each is of the next phase
    names         TEXT,                                -- the names of its events, in order, commas between
    tokens_in     INTEGER NOT NULL DEFAULT 0,          -- of its one checkpoint that paid for something
    tokens_out    INTEGER NOT NULL DEFAULT 0,
    tokens_cached INTEGER NOT NULL DEFAULT 0,
    cost          INTEGER NOT NULL DEFAULT 0,          -- millionths of a currency
    model         TEXT,                                -- NULL: no model was paid for
    paid_at       INTEGER,                             -- when the model was paid for
    at            INTEGER NOT NULL,                    -- when the last of it happened
    body          TEXT,                                -- JSON: checkpoints and events
    said          TEXT,                                -- JSON: messages
    PRIMARY KEY (stream, last_event, last_message, turn, phase),
    CHECK ((events > 0) = (names IS NOT NULL)),
    CHECK ((messages > 0) = (said IS NOT NULL)),
    CHECK ((phases > 0) = (phase >= 0) AND phase + phases <= 7),
    CHECK ((model IS NULL) = (paid_at IS NULL))
);
-- Each write of a turn names the end of the record that it follows (totals.writes, turn, phase), so no phase is committed twice.
CREATE UNIQUE INDEX journal_phases ON journal (stream, turn, phase, job_seq) WHERE phases > 0;
CREATE UNIQUE INDEX journal_commits ON journal (commit_id, stream, last_event) WHERE events > 0;
-- What was paid for, by time: the costs per day are sums over these alone.
CREATE INDEX journal_paid ON journal (paid_at) WHERE paid_at IS NOT NULL;

-- One row per commit that wrote events. The numbers are the order of all events: they rise, and have holes. They are partly
-- random: one that is not found belongs to a commit that this database never had, or whose events are deleted. They are the
-- ids as well, because one writer makes them.
CREATE TABLE commits (
    number INTEGER PRIMARY KEY,
    id     INTEGER NOT NULL GENERATED ALWAYS AS (number) VIRTUAL
);

-- One row per commit that has no number yet. Only PostgreSQL has such commits.
CREATE TABLE new_commits (
    seq INTEGER PRIMARY KEY,
    id  INTEGER NOT NULL
);

-- The only row has the last number of a commit. The statement that numbers commits locks it. Only PostgreSQL uses it.
CREATE TABLE feed_order (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL
);
INSERT INTO feed_order (one, number) VALUES (1, 0);

-- One row per reader of all events: the last event that it has read.
CREATE TABLE event_marks (
    name   TEXT    PRIMARY KEY,
    number INTEGER NOT NULL,                           -- of the commit
    stream INTEGER NOT NULL,
    seq    INTEGER NOT NULL
) WITHOUT ROWID;

-- Tool calls

-- One row per tool call, the journal: intent before the call, outcome after it.
CREATE TABLE tool_calls (
    seq            INTEGER PRIMARY KEY,
    call_id        TEXT    NOT NULL UNIQUE,
    job_seq        INTEGER NOT NULL,
    engagement_seq INTEGER NOT NULL,
    turn           INTEGER NOT NULL,
    position       INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    input          TEXT    NOT NULL,
    idempotent     INTEGER NOT NULL CHECK (idempotent IN (0, 1)),
    state          TEXT    NOT NULL CHECK (state IN ('planned', 'sent', 'settled')),
    sends          INTEGER NOT NULL DEFAULT 0,         -- requests that may have left
    outcome        TEXT,
    withheld       INTEGER NOT NULL DEFAULT 0 CHECK (withheld IN (0, 1)),
    duration_ms    INTEGER,
    created_at     INTEGER NOT NULL,
    again          INTEGER NOT NULL DEFAULT 0 CHECK (again IN (0, 1)),     -- the next turn makes the call again
    provider       TEXT,                               -- the tool that is then called instead of its own
    retries        INTEGER NOT NULL DEFAULT 0 CHECK (retries >= 0),        -- tries beyond the first
    tried          TEXT,                               -- failed tries before the last: JSON objects without content, joined by commas
    handled        TEXT,                               -- JSON: what a handler made of the failure
    started_at     INTEGER,                            -- when its first request may have left
    completed_at   INTEGER,                            -- when its outcome was known
    cost           INTEGER NOT NULL DEFAULT 0,         -- millionths of a currency
    answered_by    TEXT,                               -- digest of the key that the client gave its answer: it tells a repetition
    told           INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1)),      -- the question was displayed to a user
    UNIQUE (job_seq, turn, position),
    CHECK ((state = 'settled') = (outcome IS NOT NULL))
);
CREATE INDEX tool_calls_engagement ON tool_calls (engagement_seq, turn, seq);
CREATE INDEX tool_calls_again ON tool_calls (job_seq) WHERE again = 1;
CREATE INDEX tool_calls_answered ON tool_calls (engagement_seq, answered_by) WHERE answered_by IS NOT NULL;

-- One row per call whose retry was requested: how often.
CREATE TABLE tool_retries (
    job_seq  INTEGER NOT NULL,
    call_id  TEXT    NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (job_seq, call_id)
) WITHOUT ROWID;

-- One row per content of artifacts and tenant: a content is kept once, however often it is made.
CREATE TABLE artifact_contents (
    tenant  TEXT    NOT NULL,                          -- '' is none
    digest  TEXT    NOT NULL,                          -- lower-case hex SHA-256 of the bytes
    bytes   INTEGER NOT NULL CHECK (bytes >= 0),
    uses    INTEGER NOT NULL CHECK (uses >= 0),        -- artifacts that have this content; without any it is deleted
    content TEXT    NOT NULL,                          -- the bytes in base64
    PRIMARY KEY (tenant, digest)
);
CREATE INDEX artifact_contents_unused ON artifact_contents (digest) WHERE uses = 0;

-- One row per artifact: a file that an agent's tool call made for the user.
CREATE TABLE artifacts (
    id             TEXT    NOT NULL PRIMARY KEY,
    engagement_seq INTEGER NOT NULL,
    job_seq        INTEGER NOT NULL,
    call_id        TEXT    NOT NULL,                   -- the call that made it
    turn           INTEGER NOT NULL,
    part           INTEGER NOT NULL,                   -- its place among the files of the call
    tenant         TEXT    NOT NULL,
    digest         TEXT    NOT NULL,
    name           TEXT    NOT NULL,
    media_type     TEXT    NOT NULL,
    created_at     INTEGER NOT NULL
);
CREATE INDEX artifacts_engagement ON artifacts (engagement_seq, turn);

-- One row per circuit breaker of a tool or a model. It opens by the share of failures among the last calls.
CREATE TABLE breakers (
    name       TEXT    PRIMARY KEY,                    -- JSON: ["tool", agent, tool] or ["model", provider, model]
    state      TEXT    NOT NULL DEFAULT '{}',          -- JSON: the last calls, and the trial calls
    failures   INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    open_until INTEGER,                                -- half-open after that time
    release_at INTEGER,                                -- when waiting jobs may be released
    changed_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX breakers_release ON breakers (release_at) WHERE release_at IS NOT NULL;

-- One row per job whose last attempt a breaker refused. It counts only while its job has not been claimed since.
CREATE TABLE breaker_waits (
    job_seq INTEGER PRIMARY KEY,
    breaker TEXT    NOT NULL,
    attempt INTEGER NOT NULL
);
CREATE INDEX breaker_waits_breaker ON breaker_waits (breaker, job_seq);

-- Reviews and guardrails

-- One row per question to reviewers: one, several (quorums, reminders, escalation), or an agent.
CREATE TABLE reviews (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    engagement_seq INTEGER NOT NULL,
    job_seq        INTEGER NOT NULL,
    turn           INTEGER NOT NULL,
    call_id        TEXT    NOT NULL,                   -- empty: it is about no call
    kind           TEXT    NOT NULL CHECK (kind IN ('input', 'output', 'unknown_outcome', 'escalation', 'confirmation')),
    reviewer       TEXT    NOT NULL,
    question       TEXT    NOT NULL,
    arguments_hash TEXT    NOT NULL,
    state          TEXT    NOT NULL CHECK (state IN ('open', 'approved', 'rejected', 'expired')),
    decided_by     TEXT,
    reason         TEXT,
    created_at     INTEGER NOT NULL,
    deadline_at    INTEGER,
    decided_at     INTEGER,
    plan           TEXT,                               -- JSON: who is asked, step by step; NULL: the reviewer
    members        TEXT    NOT NULL DEFAULT '',        -- those who are asked now, each between line breaks
    step           INTEGER NOT NULL DEFAULT 0 CHECK (step >= 0),
    votes          TEXT,                               -- JSON: what they said so far
    remind_at      INTEGER,
    reminders      INTEGER NOT NULL DEFAULT 0 CHECK (reminders >= 0),
    asked          TEXT,                               -- the engagement in which an agent is asked
    spent          INTEGER NOT NULL DEFAULT 0 CHECK (spent IN (0, 1)),  -- a retry of the job overtook its no: reviewers are asked anew
    told           INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1)),   -- the question was displayed to a user
    late           TEXT    NOT NULL DEFAULT '',        -- who answered late, each between line breaks: one event per name
    reported       TEXT,                               -- JSON: the result of a call of unknown outcome, in the reviewer's words
    CHECK ((state = 'open') = (decided_at IS NULL))
);
CREATE INDEX reviews_open ON reviews (seq) WHERE state = 'open';
CREATE INDEX reviews_job ON reviews (job_seq, turn);
CREATE INDEX reviews_engagement ON reviews (engagement_seq);
CREATE INDEX reviews_asked ON reviews (asked) WHERE asked IS NOT NULL;

-- One row per check of a guardrail: its question and its answer. Only the audit reads it.
CREATE TABLE guardrail_checks (
    id             TEXT    PRIMARY KEY,                -- the call of the guardrail's tool, and the attempt of the job
    engagement_seq INTEGER NOT NULL,
    job_seq        INTEGER NOT NULL,
    turn           INTEGER NOT NULL,
    side           TEXT    NOT NULL CHECK (side IN ('input', 'output')),
    tool           TEXT    NOT NULL,
    content        TEXT    NOT NULL,                   -- JSON: arguments, output or error, and why it did not pass
    passed         INTEGER NOT NULL CHECK (passed IN (0, 1)),
    created_at     INTEGER NOT NULL
);
CREATE INDEX guardrail_checks_engagement ON guardrail_checks (engagement_seq);
CREATE INDEX guardrail_checks_job ON guardrail_checks (job_seq);

-- Delegation

-- One row per job that works for another one.
CREATE TABLE delegations (
    job_seq     INTEGER PRIMARY KEY,
    parent_seq  INTEGER NOT NULL,                      -- the job that it works for
    call_id     TEXT,                                  -- the call that it answers; NULL: no call waits for it
    turn        INTEGER NOT NULL,                      -- the parent's turn
    agent       TEXT    NOT NULL,
    mode        TEXT    NOT NULL CHECK (mode IN ('supervisor', 'parallel', 'handoff')),
    state       TEXT    NOT NULL CHECK (state IN ('open', 'success', 'error', 'timeout')),
    started_at  INTEGER NOT NULL,
    deadline_at INTEGER,
    ended_at    INTEGER,
    CHECK ((state = 'open') = (ended_at IS NULL))
);
CREATE INDEX delegations_parent ON delegations (parent_seq, turn);
CREATE INDEX delegations_open ON delegations (parent_seq) WHERE state = 'open';
CREATE INDEX delegations_overdue ON delegations (deadline_at) WHERE state = 'open' AND deadline_at IS NOT NULL;

-- One row per call to a remote agent, until the call is over or its cancellation was delivered.
CREATE TABLE elsewhere (
    call_id TEXT    NOT NULL,
    place   TEXT    NOT NULL,                          -- the agent: its name in the configuration, or its address
    job_seq INTEGER NOT NULL,
    handle  TEXT,                                      -- JSON: the id of the work on that server, once it is known
    due_at  INTEGER,                                   -- when to send the next cancellation; NULL while the call is wanted
    tries   INTEGER NOT NULL DEFAULT 0,                -- cancellations sent
    PRIMARY KEY (call_id, place)
);
CREATE INDEX elsewhere_job ON elsewhere (job_seq);
CREATE INDEX elsewhere_due ON elsewhere (due_at) WHERE due_at IS NOT NULL;

-- Forks and branches

-- One row per engagement that was forked from a turn of another one. It reads the other's past and does not copy it.
CREATE TABLE forks (
    engagement_seq INTEGER PRIMARY KEY,
    parent_id      TEXT    NOT NULL,                   -- the engagement that it was forked from
    at_turn        INTEGER NOT NULL CHECK (at_turn >= 1),
    phase          INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 6),   -- the first one that is run anew
    live_tools     INTEGER NOT NULL CHECK (live_tools IN (0, 1)),
    changes        TEXT    NOT NULL,                   -- JSON: what was set
    created_at     INTEGER NOT NULL
);

-- One row per engagement whose rows a fork or a branch reads beside its own. An engagement has its first job's number,
-- and so have that job's journal.
CREATE TABLE inheritances (
    engagement_seq INTEGER NOT NULL,
    source_seq     INTEGER NOT NULL,
    generation     INTEGER NOT NULL CHECK (generation >= 1),         -- 1: the one that it was forked from
    turn_until     INTEGER NOT NULL,                   -- the first turn that it does not read
    PRIMARY KEY (engagement_seq, source_seq)
);
CREATE INDEX inheritances_source ON inheritances (source_seq);

-- One row per call that was not made: the recorded outcome of another call replaces its own.
CREATE TABLE stubs (
    job_seq INTEGER NOT NULL,
    call_id TEXT    NOT NULL,
    of_call TEXT    NOT NULL,
    PRIMARY KEY (job_seq, call_id)
);

-- One row per job that was forked or merged from others. All that come from one root may be merged.
CREATE TABLE branches (
    job_seq    INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,                -- the engagement's id, or a plain job's
    name       TEXT,
    root_seq   INTEGER NOT NULL,                       -- the job that all of them come from
    parent_seq INTEGER NOT NULL,
    at_turn    INTEGER NOT NULL,                       -- the first turn of its own
    created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX branches_name ON branches (root_seq, name) WHERE name IS NOT NULL;

-- What agents keep

-- One row per owner of state keys: an engagement, or a user of an agent. The version grows with each commit.
CREATE TABLE state_scopes (
    name           TEXT    PRIMARY KEY,
    engagement_seq INTEGER,                            -- NULL: it outlives engagements
    version        INTEGER NOT NULL CHECK (version >= 0),
    updated_at     INTEGER NOT NULL
);
CREATE INDEX state_scopes_engagement ON state_scopes (engagement_seq) WHERE engagement_seq IS NOT NULL;

-- One row per key that an agent keeps between turns.
CREATE TABLE state_keys (
    scope      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    content    TEXT    NOT NULL,                       -- JSON
    version    INTEGER NOT NULL CHECK (version > 0),   -- of the scope, when the key was written
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (scope, name)
);
CREATE INDEX state_keys_expiring ON state_keys (expires_at) WHERE expires_at IS NOT NULL;

-- One row per completed job whose agent remembers its user across engagements. The texts are in `journal`: without them
-- nothing is remembered.
CREATE TABLE memories (
    job_seq        INTEGER PRIMARY KEY,
    engagement_seq INTEGER NOT NULL,
    tenant         TEXT    NOT NULL,                   -- empty: none
    agent_name     TEXT    NOT NULL,
    user_id        TEXT    NOT NULL,
    rules          TEXT    NOT NULL,                   -- the digest of the guardrails and filters that it has passed
    began          INTEGER NOT NULL,                   -- the turn that took the input
    ended          INTEGER NOT NULL CHECK (ended >= began),   -- the turn that answered
    completed_at   INTEGER NOT NULL
);
CREATE INDEX memories_of_user ON memories (tenant, agent_name, user_id, rules, completed_at);

-- One row per header that is sent with the calls of a tool: for a user without a tenant (`user`), for a user of a tenant
-- (`member`), or for a static identity (`static`). A member's subject is the tenant (with its colons as %3A and its percent
-- signs as %25), a colon, and the user's id.
CREATE TABLE credentials (
    kind       TEXT    NOT NULL CHECK (kind IN ('user', 'member', 'static')),
    subject    TEXT    NOT NULL,                       -- the user's id, the member's, or the identity's name
    tool       TEXT    NOT NULL,                       -- '*': every tool
    header     TEXT    NOT NULL,                       -- in lower case
    prefix     TEXT    NOT NULL,
    form       TEXT    NOT NULL CHECK (form IN ('reference', 'value')),
    content    TEXT    NOT NULL,                       -- where the secret is, or the secret, which is always sealed
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (kind, subject, tool, header)
);

-- Access

-- One row per API key of a principal. The secret is not stored: it is shown once.
CREATE TABLE api_keys (
    id              TEXT    PRIMARY KEY,
    hash            TEXT    NOT NULL,                  -- lower-case hex SHA-256 of the secret
    old_hash        TEXT,                              -- that of the secret before the last rotation
    old_until       INTEGER,                           -- the end of its use
    name            TEXT    NOT NULL,                  -- the principal
    tenant          TEXT,                              -- NULL: the fleet
    roles           TEXT    NOT NULL,                  -- JSON array
    acts_for        TEXT    NOT NULL,                  -- JSON array of users and reviewers; '*' means all
    rate_per_minute INTEGER,
    created_at      INTEGER NOT NULL,
    created_by      TEXT    NOT NULL,
    expires_at      INTEGER,
    revoked_at      INTEGER,
    last_used_at    INTEGER
);

CREATE UNIQUE INDEX api_keys_by_hash ON api_keys (hash);
CREATE INDEX api_keys_by_old_hash ON api_keys (old_hash) WHERE old_hash IS NOT NULL;

-- One row per entry of the audit: a change, written in its transaction, or a refused request. Rows are never changed
-- and never deleted; each has the hash of the one before.
CREATE TABLE audit_entries (
    seq        INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL,
    principal  TEXT    NOT NULL,
    tenant     TEXT,                       -- NULL: the fleet
    action     TEXT    NOT NULL,           -- method and path of the operation
    target     TEXT    NOT NULL,           -- the path of the request
    outcome    TEXT    NOT NULL,           -- done, or the status and code of a refusal
    old_hash   TEXT,                       -- of what the change replaced
    new_hash   TEXT,                       -- of the request's body
    source     TEXT,                       -- the client's address
    request_id TEXT,
    previous   TEXT    NOT NULL,           -- the hash of the entry before
    hash       TEXT    NOT NULL
);

CREATE INDEX audit_entries_by_tenant ON audit_entries (tenant, seq) WHERE tenant IS NOT NULL;

-- One row per freeze: while it is there, turns of its tenant, or of the fleet, call no model and no tool.
CREATE TABLE freezes (
    scope     TEXT    PRIMARY KEY,         -- the tenant; empty for the fleet
    reason    TEXT,
    frozen_by TEXT    NOT NULL,
    frozen_at INTEGER NOT NULL
);

-- The end of the audit, at most one row. A transaction that appends locks it.
CREATE TABLE audit_heads (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    seq  INTEGER NOT NULL,
    hash TEXT    NOT NULL
);

-- Runs of the Agent Protocol

-- One row per run that a client asked for: the events of an engagement and of those that work for it, numbered without
-- gaps. Numbers are given when a client asks, so that a run that no client follows costs nothing.
CREATE TABLE runs (
    engagement_seq INTEGER PRIMARY KEY,
    told           INTEGER NOT NULL CHECK (told >= 0), -- the number of its last event
    marks          TEXT    NOT NULL                    -- JSON: up to where each engagement was numbered
);

-- One row per numbered event of a run.
CREATE TABLE run_events (
    engagement_seq INTEGER NOT NULL,
    id             INTEGER NOT NULL CHECK (id > 0),
    job_seq        INTEGER NOT NULL,                   -- the request that it belongs to
    body           TEXT    NOT NULL,                   -- JSON: the event as it is sent
    PRIMARY KEY (engagement_seq, id)
) WITHOUT ROWID;
CREATE INDEX run_events_job ON run_events (job_seq, id);

-- One row per request of a run: a job.
CREATE TABLE run_requests (
    job_seq        INTEGER PRIMARY KEY,
    engagement_seq INTEGER NOT NULL,
    began          INTEGER NOT NULL,                   -- the number of request_started
    ended          INTEGER,                            -- the number of request_completed
    seen           INTEGER NOT NULL DEFAULT 0          -- up to where it was polled without `since`
);
CREATE INDEX run_requests_run ON run_requests (engagement_seq);

-- One row per configuration that a client left for later requests: of all runs of an agent, or of one run.
CREATE TABLE run_settings (
    agent_name TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,                       -- '' is none
    run        TEXT    NOT NULL,                       -- '' is all runs
    version    INTEGER NOT NULL CHECK (version > 0),
    args       TEXT    NOT NULL,                       -- JSON: an object
    PRIMARY KEY (agent_name, tenant, run)
);

-- Limits

-- One row per limit that jobs name by a key: what it allows, and what of it is used. Active jobs are counted when it matters.
CREATE TABLE rate_keys (
    name        TEXT    PRIMARY KEY,
    asked       TEXT,                                  -- JSON: the limit that jobs named last
    overridden  INTEGER NOT NULL DEFAULT 0 CHECK (overridden IN (0, 1)),
    concurrency INTEGER,
    rate        INTEGER,                               -- starts per period
    period_ms   INTEGER,
    throttle_ms INTEGER,                               -- least time between two starts
    window_at   INTEGER NOT NULL DEFAULT 0,
    started     INTEGER NOT NULL DEFAULT 0,            -- starts since window_at
    next_at     INTEGER NOT NULL DEFAULT 0,            -- no job starts before
    booked_at   INTEGER NOT NULL DEFAULT 0,            -- the last start that was promised to a rescheduled job
    waiting     INTEGER NOT NULL DEFAULT 0 CHECK (waiting IN (0, 1)),   -- jobs are set aside for it
    opens_at    INTEGER,                               -- when to notify the workers that wait
    CHECK (started >= 0)
) WITHOUT ROWID;
CREATE INDEX rate_keys_waiting ON rate_keys (next_at) WHERE waiting = 1;
CREATE INDEX rate_keys_opening ON rate_keys (opens_at) WHERE opens_at IS NOT NULL;

-- One row per tenant that an operator limits. NULL: no limit.
CREATE TABLE tenant_limits (
    tenant            TEXT    PRIMARY KEY,
    max_concurrency   INTEGER,                         -- active jobs, at most
    max_queue_depth   INTEGER,                         -- waiting jobs, at most
    max_scheduled     INTEGER,                         -- of them scheduled ones, at most
    enqueue_rate      INTEGER,                         -- accepted jobs per period
    enqueue_period_ms INTEGER,
    window_at         INTEGER NOT NULL DEFAULT 0,
    enqueued          INTEGER NOT NULL DEFAULT 0,      -- accepted since window_at
    reason            TEXT,                            -- why it was set, in the operator's words
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL
) WITHOUT ROWID;

-- One row per bucket of a provider's requests and tokens, which all workers share: what is left, in sixty-thousandths.
CREATE TABLE rate_limits (
    name       TEXT    PRIMARY KEY,
    requests   INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    as_of      INTEGER NOT NULL,
    held_until INTEGER NOT NULL DEFAULT 0              -- what the provider asked for
) WITHOUT ROWID;

-- Cron, workflows, webhooks, schemas

-- One row per cron entry.
CREATE TABLE crons (
    tenant         TEXT    NOT NULL,                   -- '' is none
    name           TEXT    NOT NULL,
    expression     TEXT    NOT NULL,
    timezone       TEXT    NOT NULL,
    overlap_policy TEXT    NOT NULL CHECK (overlap_policy IN ('skip', 'allow', 'cancel_previous', 'enqueue')),
    missed_policy  TEXT    NOT NULL CHECK (missed_policy IN ('once', 'all', 'skip')),
    enabled        INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    template       TEXT    NOT NULL,                   -- JSON: the request to enqueue
    description    TEXT,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    next_run_at    INTEGER,
    last_run_at    INTEGER,
    last_job_id    TEXT,
    runs           INTEGER NOT NULL DEFAULT 0,
    last_error     TEXT,
    PRIMARY KEY (tenant, name),
    CHECK (enabled = 1 OR next_run_at IS NULL)
) WITHOUT ROWID;
CREATE INDEX crons_due ON crons (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX crons_name ON crons (name);

-- One row per outcome of the latest occurrences of a cron entry.
CREATE TABLE cron_runs (
    id           TEXT    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    scheduled_at INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    outcome      TEXT    NOT NULL CHECK (outcome IN ('triggered', 'skipped', 'failed')),
    job_id       TEXT,                                 -- the job that was enqueued, or the one that prevented it
    message      TEXT
) WITHOUT ROWID;
CREATE INDEX cron_runs_latest ON cron_runs (tenant, name, scheduled_at, id);

-- One row per workflow. It takes a number as a job does: its events are the stream of that number.
CREATE TABLE workflows (
    seq        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    tenant     TEXT,
    kind       TEXT    NOT NULL CHECK (kind IN ('chain', 'group', 'batch', 'graph')),
    name       TEXT,
    state      TEXT    NOT NULL CHECK (state IN ('running', 'completed', 'failed', 'cancelled')),
    members    INTEGER NOT NULL,                       -- callbacks do not count
    ended      INTEGER NOT NULL DEFAULT 0,
    succeeded  INTEGER NOT NULL DEFAULT 0,
    events     INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    queues     TEXT,                                   -- JSON, sorted: the queues of its jobs, which filters match its events by
    CHECK ((state = 'running') = (ended_at IS NULL)),
    CHECK (succeeded <= ended AND ended <= members)
);
CREATE INDEX workflows_chosen ON workflows (substr(id, 1, 36)) WHERE substr(id, 37, 1) = '~';
CREATE INDEX workflows_ended ON workflows (ended_at) WHERE ended_at IS NOT NULL;

-- One row per step of a workflow, callbacks included.
CREATE TABLE workflow_steps (
    workflow_seq INTEGER NOT NULL,
    step         INTEGER NOT NULL,
    name         TEXT,
    role         TEXT    NOT NULL CHECK (role IN ('member', 'on_complete', 'on_success', 'on_failure')),
    needs        TEXT    NOT NULL,                     -- JSON: steps whose results it gets
    next         TEXT    NOT NULL,                     -- JSON: steps that wait for it
    waits        INTEGER NOT NULL CHECK (waits >= 0),  -- how many steps have to succeed before
    state        TEXT    NOT NULL CHECK (state IN ('waiting', 'enqueued', 'succeeded', 'failed', 'skipped')),
    job_id       TEXT    NOT NULL,
    job_type     TEXT    NOT NULL,
    job          TEXT    NOT NULL,                     -- JSON: the job to be enqueued
    PRIMARY KEY (workflow_seq, step)
) WITHOUT ROWID;

-- One row per webhook subscription.
CREATE TABLE webhooks (
    id         TEXT    PRIMARY KEY,
    tenant     TEXT,
    url        TEXT    NOT NULL,
    events     TEXT    NOT NULL,                       -- JSON: list of names, `*` and `job.*` allowed
    filter     TEXT    NOT NULL,                       -- JSON: queues, job types
    metadata   TEXT    NOT NULL,
    secret     TEXT    NOT NULL,
    old_secret TEXT,                                   -- still signs until old_until
    old_until  INTEGER,
    active     INTEGER NOT NULL CHECK (active IN (0, 1)),
    since      INTEGER NOT NULL,                       -- it receives the events of commits with a number above this
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- One row per event that a webhook receives.
CREATE TABLE deliveries (
    id         TEXT    PRIMARY KEY,
    webhook_id TEXT    NOT NULL,
    event_id   TEXT    NOT NULL,
    event      TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER,
    status     INTEGER,
    error      TEXT,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    CHECK ((state = 'pending') = (next_at IS NOT NULL))
) WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_old ON deliveries (created_at);

-- One row per version of a job type's schema.
CREATE TABLE job_schemas (
    job_type   TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    mode       TEXT    NOT NULL CHECK (mode IN ('enforce', 'warn', 'off')),
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (job_type, version)
) WITHOUT ROWID;

-- The idempotency keys of pushes, and the answers that are given again under them.
CREATE TABLE idempotency_keys (
    name       TEXT PRIMARY KEY,                       -- the digest of the principal, the tenant and the key
    request    TEXT NOT NULL,                          -- the digest of the endpoint and the body
    pushed     TEXT NOT NULL DEFAULT '[]',             -- JSON: [[job id, state, whether another job stands for it], …]
    answer     TEXT,                                   -- the body of the answer. NULL: it was not given yet
    expires_at INTEGER NOT NULL
);
CREATE INDEX idempotency_keys_expires ON idempotency_keys (expires_at);

-- The fleet

-- One row per kind of leadership: which process leads, and until when.
CREATE TABLE leaders (
    name       TEXT    PRIMARY KEY,
    holder     TEXT    NOT NULL,
    token      TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

-- One row per worker. Workers over HTTP have one from their first heartbeat. A directive is an operator's order to a worker.
CREATE TABLE workers (
    name       TEXT    PRIMARY KEY,
    instance   TEXT    NOT NULL,
    host       TEXT    NOT NULL,
    pid        INTEGER NOT NULL,
    version    TEXT    NOT NULL,
    queues     TEXT    NOT NULL,                       -- JSON: list of names
    slots      INTEGER NOT NULL,
    busy       INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('running', 'draining')),
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    kind       TEXT    NOT NULL DEFAULT 'own' CHECK (kind IN ('own', 'http')),
    directive  TEXT    CHECK (directive IN ('quiet', 'terminate'))
) WITHOUT ROWID;

-- One row per hour, queue and final state: the jobs that ended then. The row of an hour grows until all of them are counted.
CREATE TABLE statistics (
    hour    INTEGER NOT NULL,
    queue   TEXT    NOT NULL,
    state   TEXT    NOT NULL CHECK (state IN ('completed', 'cancelled', 'discarded')),
    jobs    INTEGER NOT NULL,
    tokens  INTEGER NOT NULL,
    took_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, queue, state)
) WITHOUT ROWID;

-- The only row says how far the statistics have come: jobs that ended before it are counted.
CREATE TABLE statistics_mark (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    ended_at INTEGER NOT NULL
);
INSERT INTO statistics_mark (one, ended_at) VALUES (1, 0);

-- One row per writer: its last committed transaction, which it looks up after its connection broke during a commit. Only
-- PostgreSQL has such writers.
CREATE TABLE writers (
    name        TEXT PRIMARY KEY,
    last_commit TEXT NOT NULL                          -- UUIDv7: the age of a row can be read from it
) WITHOUT ROWID;

-- Keys

-- One row per data key (encryption at rest): values are sealed with it, and it is sealed with a key of the configuration.
CREATE TABLE data_keys (
    seq  INTEGER PRIMARY KEY,
    body TEXT    NOT NULL
);

-- One row per key that all processes of a fleet share, such as the one that signs receipts.
CREATE TABLE server_keys (
    name       TEXT    PRIMARY KEY,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
