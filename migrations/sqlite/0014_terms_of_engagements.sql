-- A delegate may have a limit of its own within its tree: a budget named `engagement/ID`, beside the tree's. Those who work
-- for it pay into it as well.
ALTER TABLE engagements ADD COLUMN limited_by TEXT;     -- the names of such budgets with spaces between them, the highest first

-- How long an agent's document wants the conversation to be kept after its end; NULL when that is over, or not said.
ALTER TABLE engagements ADD COLUMN retention_ms INTEGER;
CREATE INDEX engagements_retained ON engagements (seq) WHERE retention_ms IS NOT NULL;

-- What was paid for, by time: what is spent per day is added up of these alone.
CREATE INDEX checkpoints_paid ON checkpoints (at) WHERE model IS NOT NULL;
