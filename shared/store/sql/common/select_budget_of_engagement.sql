-- The budget of an engagement, its own before that of its tree, and the job that works on its input, or its latest one. $1 id, $2 tenant of its jobs; NULL means every one.
SELECT b.seq, {columns of budget},
       (SELECT j.id FROM jobs AS j WHERE j.engagement_seq = e.seq
        ORDER BY CASE WHEN j.ended_at IS NULL THEN 0 ELSE 1 END, CASE WHEN j.ended_at IS NULL THEN j.seq ELSE -j.seq END
        LIMIT 1) AS job_id
FROM engagements AS e
JOIN totals AS b ON b.seq = coalesce((SELECT o.seq FROM totals AS o WHERE o.name = 'engagement/' || e.id AND o.day = -1),
                                  e.budget_seq)
WHERE e.id = $1
  AND ($2 IS NULL OR EXISTS (SELECT 1 FROM jobs AS t WHERE t.engagement_seq = e.seq AND t.tenant = $2))
