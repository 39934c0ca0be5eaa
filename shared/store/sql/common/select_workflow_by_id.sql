-- A workflow by its id, within a tenant when one is given.
SELECT w.seq, w.id, w.tenant, w.kind, w.name, w.state, w.members, w.ended, w.succeeded, w.events, w.created_at, w.ended_at, w.queues
FROM workflows AS w
WHERE w.id = $1 AND ($2 IS NULL OR w.tenant = $2)
