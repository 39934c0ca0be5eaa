-- Engagements that got further inputs. $1: JSON [[seq, events after it, inputs after it, how long the conversation is kept, the agent's digest], …].
-- Differs from PostgreSQL: json_each.
UPDATE engagements
SET events = r.value ->> 1, inputs = r.value ->> 2, retention_ms = r.value ->> 3, digest = r.value ->> 4
FROM json_each($1) AS r
WHERE engagements.seq = r.value ->> 0
