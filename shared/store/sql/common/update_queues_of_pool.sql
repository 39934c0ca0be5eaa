-- Puts queues into a pool.
UPDATE queues
SET pool = r.pool, weight = r.weight, pass = r.pass, claims = 0
FROM {rows: name, pool, weight, pass}
WHERE queues.name = r.name
