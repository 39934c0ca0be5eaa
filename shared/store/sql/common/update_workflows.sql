-- Writes what changes in the life of a workflow.
UPDATE workflows
SET state     = r.state,
    ended     = r.ended,
    succeeded = r.succeeded,
    events    = r.events,
    ended_at  = r.ended_at
FROM {rows: seq, state, ended, succeeded, events, ended_at}
WHERE workflows.seq = r.seq
