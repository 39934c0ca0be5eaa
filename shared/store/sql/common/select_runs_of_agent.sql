-- Runs of agent $1, the newest first: engagements that have a job of tenant $2 (NULL: any tenant's). $3 at most, after $4.
-- $5 the run that they follow; NULL matches all.
SELECT e.id, e.started_at, coalesce(r.told, 0) AS told,
       coalesce((SELECT v.at FROM journal AS v WHERE v.stream = e.seq AND v.events > 0 ORDER BY v.last_event DESC LIMIT 1), e.started_at) AS changed_at
FROM engagements AS e
LEFT JOIN runs AS r ON r.engagement_seq = e.seq
WHERE e.agent_name = $1 AND ($5 IS NULL OR e.seq < (SELECT p.seq FROM engagements AS p
                                               WHERE p.id = $5 AND ($2 IS NULL OR EXISTS (
                                                   SELECT 1 FROM jobs AS o WHERE o.engagement_seq = p.seq AND o.tenant = $2))))
  AND ($2 IS NULL OR EXISTS (SELECT 1 FROM jobs AS t WHERE t.engagement_seq = e.seq AND t.tenant = $2))
ORDER BY e.seq DESC
LIMIT $3 OFFSET $4
