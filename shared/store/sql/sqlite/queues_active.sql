-- How many jobs of these queues are active.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
SELECT r.value ->> 0 AS name, (SELECT count(*) FROM jobs AS j WHERE j.state = 'active' AND j.queue = r.value ->> 0) AS active
FROM json_each($1) AS r
