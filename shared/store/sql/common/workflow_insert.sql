-- A new workflow: seq, id, tenant, kind, name, members, created_at.
INSERT INTO workflows (seq, id, tenant, kind, name, state, members, created_at)
VALUES ($1, $2, $3, $4, $5, 'running', $6, $7)
