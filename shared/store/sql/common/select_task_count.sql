-- How many tasks match what tasks_of_agent lists: $1 to $6 as there.
SELECT count(*) AS tasks
FROM engagements AS e
JOIN jobs AS j ON j.engagement_seq = e.seq
WHERE e.agent_name = $1 AND ($2 IS NULL OR j.tenant = $2) AND ($3 IS NULL OR e.id = $3)
  AND ($4 IS NULL OR $4 LIKE '%,' || j.state || ',%')
  AND ($5 IS NULL OR (CASE WHEN j.started_at IS NULL THEN 0 ELSE 1 END) = $5)
  AND coalesce(j.ended_at, j.started_at, j.created_at) >= $6
