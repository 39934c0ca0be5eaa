-- Engagements that got a further input whose turn it is: its agent is theirs. $1 … $3: seqs, digests of the agents, how long
-- these want the conversation kept. Differs from SQLite: an array per column.
UPDATE engagements SET digest = r.digest, retention_ms = r.retention_ms
FROM unnest($1, $2, $3) AS r (seq, digest, retention_ms)
WHERE engagements.seq = r.seq
