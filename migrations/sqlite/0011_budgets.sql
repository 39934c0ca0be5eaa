-- Budgets in money, and budgets that engagements share: of the fleet, a tenant, an agent, a model; altogether or per day.
--
-- Money is in millionths of a currency. A shared budget takes numbers below zero, so that it never meets the number of a
-- job. The amounts of `budgets` are the ledger; `budget_rules` says what the limits of its rows are.

ALTER TABLE budgets ADD COLUMN scope TEXT NOT NULL DEFAULT 'engagement'
    CHECK (scope IN ('engagement', 'fleet', 'tenant', 'agent', 'model'));
ALTER TABLE budgets ADD COLUMN name TEXT CHECK ((name IS NULL) = (scope = 'engagement'));
ALTER TABLE budgets ADD COLUMN day INTEGER CHECK ((day IS NULL) = (name IS NULL));  -- since the epoch, UTC; -1 is all days
ALTER TABLE budgets ADD COLUMN currency TEXT;
ALTER TABLE budgets ADD COLUMN money_limit INTEGER;
ALTER TABLE budgets ADD COLUMN money_settled INTEGER NOT NULL DEFAULT 0 CHECK (money_settled >= 0);
ALTER TABLE budgets ADD COLUMN money_reserved INTEGER NOT NULL DEFAULT 0
    CHECK (money_reserved >= 0 AND (money_limit IS NULL OR money_settled + money_reserved <= money_limit));
ALTER TABLE budgets ADD COLUMN on_exceed TEXT CHECK (on_exceed IN ('retry', 'park', 'fail'));
ALTER TABLE budgets ADD COLUMN warn_at INTEGER CHECK (warn_at BETWEEN 1 AND 100);
CREATE UNIQUE INDEX budgets_named ON budgets (name, day) WHERE name IS NOT NULL;

-- What shared budgets limit. A part that is NULL is about everybody's.
CREATE TABLE budget_rules (
    name           TEXT PRIMARY KEY,
    tenant         TEXT,
    agent          TEXT,
    model          TEXT,
    tokens         INTEGER,
    tokens_per_day INTEGER,
    cost           INTEGER,
    cost_per_day   INTEGER,
    currency       TEXT    NOT NULL,
    on_exceed      TEXT CHECK (on_exceed IN ('retry', 'park', 'fail')),
    warn_at        INTEGER CHECK (warn_at BETWEEN 1 AND 100),
    given          TEXT,                                -- what the configuration or a manifest said of it last
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    CHECK (coalesce(tokens, tokens_per_day, cost, cost_per_day) IS NOT NULL)
) WITHOUT ROWID;

-- What a job has reserved beyond the tokens of its engagement's budget.
CREATE TABLE reservations (
    job_seq    INTEGER NOT NULL,
    budget_seq INTEGER NOT NULL,
    tokens     INTEGER NOT NULL CHECK (tokens >= 0),
    money      INTEGER NOT NULL CHECK (money >= 0),
    PRIMARY KEY (job_seq, budget_seq)
) WITHOUT ROWID;

-- Jobs whose last call did not fit into a budget. A row counts only while its job has not been claimed since.
CREATE TABLE budget_waits (
    job_seq    INTEGER PRIMARY KEY,
    budget_seq INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    due_at     INTEGER                                  -- when it may go on; NULL until the budget is raised
);
CREATE INDEX budget_waits_budget ON budget_waits (budget_seq);
CREATE INDEX budget_waits_due    ON budget_waits (due_at) WHERE due_at IS NOT NULL;

-- What a phase paid for, and what a tool call did.
ALTER TABLE checkpoints ADD COLUMN tokens_cached INTEGER NOT NULL DEFAULT 0;
ALTER TABLE checkpoints ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE checkpoints ADD COLUMN model TEXT;
ALTER TABLE tool_calls ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
