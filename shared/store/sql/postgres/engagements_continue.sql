-- Engagements that got further inputs. $1 … $5: seqs, events after it, inputs after it, how long the conversation is kept, the
-- agent's digest; without one the agent stays whose turn it is.
-- Differs from SQLite: an array per column.
UPDATE engagements
SET events = r.events, inputs = r.inputs, digest = coalesce(r.digest, engagements.digest),
    retention_ms = CASE WHEN r.digest IS NULL THEN engagements.retention_ms ELSE r.retention_ms END
FROM unnest($1, $2, $3, $4, $5) AS r (seq, events, inputs, retention_ms, digest)
WHERE engagements.seq = r.seq
