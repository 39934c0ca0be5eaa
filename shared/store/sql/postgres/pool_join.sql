-- Puts queues into a pool. Rows: name, pool, weight, pass.
-- Differs from SQLite: an array per column.
UPDATE queues
SET pool = r.pool, weight = r.weight, pass = r.pass, claims = 0
FROM unnest($1, $2, $3, $4) AS r (name, pool, weight, pass)
WHERE queues.name = r.name
