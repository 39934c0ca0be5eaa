-- Engagements that got further inputs. $1 … $5: seqs, events after it, inputs after it, how long the conversation is kept, the
-- agent's digest.
-- Differs from SQLite: an array per column.
UPDATE engagements
SET events = r.events, inputs = r.inputs, retention_ms = r.retention_ms, digest = r.digest
FROM unnest($1, $2, $3, $4, $5) AS r (seq, events, inputs, retention_ms, digest)
WHERE engagements.seq = r.seq
