-- Tasks of agent $1, those that changed last first: its jobs of tenant $2 in engagement $3 (NULL: any), in one of the states
-- that $4 lists between commas (NULL: any), that have begun ($5 = 1), have not (0), or either (NULL), that changed at $6 or
-- later, behind the one that changed at $7 and has number $8; $9 at most.
SELECT t.id, t.seq, t.changed_at
FROM (SELECT j.id, j.seq, coalesce(j.ended_at, j.started_at, j.created_at) AS changed_at
      FROM engagements AS e
      JOIN jobs AS j ON j.engagement_seq = e.seq
      WHERE e.agent_name = $1 AND ($2 IS NULL OR j.tenant = $2) AND ($3 IS NULL OR e.id = $3)
        AND ($4 IS NULL OR $4 LIKE '%,' || j.state || ',%')
        AND ($5 IS NULL OR (CASE WHEN j.started_at IS NULL THEN 0 ELSE 1 END) = $5)) AS t
WHERE t.changed_at >= $6 AND (t.changed_at < $7 OR (t.changed_at = $7 AND t.seq < $8))
ORDER BY t.changed_at DESC, t.seq DESC
LIMIT $9
