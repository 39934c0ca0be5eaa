-- How many events streams have, by the names that ring for them: engagements, and jobs that have none. $1: JSON [[name], …].
-- Differs from PostgreSQL: json_each.
SELECT e.id, c.events
FROM json_each($1) AS r
JOIN engagements AS e ON e.id = r.value ->> 0
JOIN totals AS c ON c.seq = e.seq
UNION ALL
SELECT j.id, j.events FROM json_each($1) AS r JOIN jobs AS j ON j.id = r.value ->> 0 WHERE j.engagement_seq IS NULL
