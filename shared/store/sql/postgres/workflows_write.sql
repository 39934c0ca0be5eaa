-- Writes what changes in the life of a workflow. Differs from SQLite: an array per column.
UPDATE workflows
SET state     = r.state,
    ended     = r.ended,
    succeeded = r.succeeded,
    events    = r.events,
    ended_at  = r.ended_at
FROM unnest($1, $2, $3, $4, $5, $6) AS r (seq, state, ended, succeeded, events, ended_at)
WHERE workflows.seq = r.seq
