-- Which of these limits have jobs that are set aside.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
SELECT r.value ->> 0 AS name
FROM json_each($1) AS r
WHERE EXISTS (SELECT 1 FROM jobs AS j WHERE j.limit_key = r.value ->> 0 AND j.state = 'available' AND j.set_aside = 1)
