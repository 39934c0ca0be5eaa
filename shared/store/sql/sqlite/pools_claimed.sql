-- Pools, to be claimed from.
-- $1: JSON rows. Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT p.name, p.strategy, p.pass
FROM json_each($1) AS r
JOIN pools AS p ON p.name = r.value ->> 0
