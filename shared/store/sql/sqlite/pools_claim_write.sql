-- The virtual time of pools. Rows: name, pass.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
UPDATE pools
SET pass = r.value ->> 1
FROM json_each($1) AS r
WHERE pools.name = r.value ->> 0
