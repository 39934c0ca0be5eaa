-- Engagements that got further inputs. $1: JSON [[seq, events after it, inputs after it, how long the conversation is kept, the agent's digest], …].
-- Without a digest the agent stays whose turn it is. Differs from PostgreSQL: json_each.
UPDATE engagements
SET events = r.value ->> 1, inputs = r.value ->> 2, digest = coalesce(r.value ->> 4, engagements.digest),
    retention_ms = CASE WHEN r.value ->> 4 IS NULL THEN engagements.retention_ms ELSE r.value ->> 3 END
FROM json_each($1) AS r
WHERE engagements.seq = r.value ->> 0
