-- A new workflow: seq, id, tenant, kind, name, members, created_at, queues. Nothing is written when another one has its id.
INSERT INTO workflows (seq, id, tenant, kind, name, state, members, created_at, queues)
VALUES ($1, $2, $3, $4, $5, 'running', $6, $7, $8)
ON CONFLICT (id) DO NOTHING
