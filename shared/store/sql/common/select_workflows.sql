-- Workflows of a tenant and in a state, newest first. NULL means all.
SELECT w.seq, w.id, w.tenant, w.kind, w.name, w.state, w.members, w.ended, w.succeeded, w.events, w.created_at, w.ended_at, w.queues
FROM workflows AS w
WHERE ($1 IS NULL OR w.tenant = $1) AND ($2 IS NULL OR w.state = $2)
ORDER BY w.seq DESC
LIMIT $3 OFFSET $4
