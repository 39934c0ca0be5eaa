-- Puts queues into a pool. Rows: name, pool, weight, pass.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
UPDATE queues
SET pool = r.value ->> 1, weight = r.value ->> 2, pass = r.value ->> 3, claims = 0
FROM json_each($1) AS r
WHERE queues.name = r.value ->> 0
