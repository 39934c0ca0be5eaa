-- Engagements, newest first, with the latest job of each. $1 agent, $3 tenant of its jobs; NULL matches all. $2 begun then or later,
-- $4 only those before this number, $5 at most so many.
SELECT e.seq, e.id, e.agent_name, e.user_id, e.user_email, e.started_at, c.turns, j.id AS job_id, j.state
FROM engagements AS e
JOIN totals AS c ON c.seq = e.seq
JOIN jobs AS j ON j.seq = (SELECT max(l.seq) FROM jobs AS l WHERE l.engagement_seq = e.seq)
WHERE ($1 IS NULL OR e.agent_name = $1)
  AND e.started_at >= $2
  AND ($3 IS NULL OR EXISTS (SELECT 1 FROM jobs AS t WHERE t.engagement_seq = e.seq AND t.tenant = $3))
  AND e.seq < $4
ORDER BY e.seq DESC
LIMIT $5
