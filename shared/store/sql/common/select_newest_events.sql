-- How many events streams have, by the names that ring for them: engagements, and jobs that have none.
SELECT e.id, c.events FROM engagements AS e JOIN totals AS c ON c.seq = e.seq WHERE e.id {in: ids}
UNION ALL
SELECT j.id, j.events FROM jobs AS j WHERE j.id {in: ids} AND j.engagement_seq IS NULL
