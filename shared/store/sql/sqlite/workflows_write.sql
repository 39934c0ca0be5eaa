-- Writes what changes in the life of a workflow. $1: JSON [[seq, state, ended, succeeded, events, ended_at], …].
-- Differs from PostgreSQL: json_each.
UPDATE workflows
SET state     = r.value ->> 1,
    ended     = r.value ->> 2,
    succeeded = r.value ->> 3,
    events    = r.value ->> 4,
    ended_at  = r.value ->> 5
FROM json_each($1) AS r
WHERE workflows.seq = r.value ->> 0
