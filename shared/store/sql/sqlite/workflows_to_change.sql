-- Workflows by number, to be changed. $1: JSON [[seq], …].
-- Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT w.seq, w.id, w.tenant, w.kind, w.name, w.state, w.members, w.ended, w.succeeded, w.events, w.created_at, w.ended_at, w.queues
FROM json_each($1) AS r
JOIN workflows AS w ON w.seq = r.value ->> 0
