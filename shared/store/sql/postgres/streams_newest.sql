-- How many events streams have, by the names that ring for them: engagements, and jobs that have none. $1: names.
-- Differs from SQLite: an array.
SELECT e.id, c.events FROM engagements AS e JOIN totals AS c ON c.seq = e.seq WHERE e.id = ANY($1)
UNION ALL
SELECT j.id, j.events FROM jobs AS j WHERE j.id = ANY($1) AND j.engagement_seq IS NULL
