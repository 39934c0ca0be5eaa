-- No other transaction may compare or insert jobs that are alike in one of the keys $1: JSON [[key], …].
-- Differs from PostgreSQL: there is only one transaction that writes, so there is nothing to lock.
SELECT r.value ->> 0 AS unique_key FROM json_each($1) AS r LIMIT 0
