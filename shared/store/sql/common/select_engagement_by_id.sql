-- One engagement with its budget, its definition and the job that works on its input, or its latest one. $2 tenant of its jobs; NULL means every one.
SELECT {columns of engagement}, d.definition,
       (SELECT j.id FROM jobs AS j WHERE j.engagement_seq = e.seq
        ORDER BY CASE WHEN j.ended_at IS NULL THEN 0 ELSE 1 END, CASE WHEN j.ended_at IS NULL THEN j.seq ELSE -j.seq END
        LIMIT 1) AS job_id
FROM engagements AS e
JOIN totals AS c ON c.seq = e.seq
JOIN totals AS b ON b.seq = e.budget_seq
JOIN agent_definitions AS d ON d.digest = e.digest
WHERE e.id = $1
  AND ($2 IS NULL OR EXISTS (SELECT 1 FROM jobs AS t WHERE t.engagement_seq = e.seq AND t.tenant = $2))
