-- Engagements that got further inputs. $1 … $4: seqs, events after it, inputs after it, how long the conversation is kept.
-- Differs from SQLite: an array per column.
UPDATE engagements
SET events = r.events, inputs = r.inputs, retention_ms = r.retention_ms
FROM unnest($1, $2, $3, $4) AS r (seq, events, inputs, retention_ms)
WHERE engagements.seq = r.seq
