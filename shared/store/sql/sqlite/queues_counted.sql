-- Jobs of these queues per state. $2: only those of this tenant; NULL for all.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
SELECT j.queue, j.state, count(*) AS jobs
FROM jobs AS j
WHERE j.queue IN (SELECT r.value ->> 0 FROM json_each($1) AS r) AND ($2 IS NULL OR j.tenant = $2)
GROUP BY j.queue, j.state
