-- Engagements that got a further input whose turn it is: its agent is theirs. `retention_ms` is how long the agent
-- wants the conversation kept.
UPDATE engagements SET digest = r.digest, retention_ms = r.retention_ms
FROM {rows: seq, digest, retention_ms}
WHERE engagements.seq = r.seq
