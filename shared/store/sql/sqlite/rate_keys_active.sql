-- How many jobs that name these limits are active.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
SELECT r.value ->> 0 AS name, (SELECT count(*) FROM jobs AS j WHERE j.state = 'active' AND j.limit_key = r.value ->> 0) AS active
FROM json_each($1) AS r
