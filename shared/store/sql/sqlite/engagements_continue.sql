-- Engagements that got a further input whose turn it is: its agent is theirs.
-- $1: JSON [[seq, digest of the agent, how long it wants the conversation kept], …]. Differs from PostgreSQL: json_each.
UPDATE engagements SET digest = r.value ->> 1, retention_ms = r.value ->> 2
FROM json_each($1) AS r
WHERE engagements.seq = r.value ->> 0
