-- At most $2 jobs of queues and states that ended before a time and are counted, of engagements and workflows that ended
-- altogether and that no fork reads. $1: JSON [[queue, state, before], …]. Differs from PostgreSQL: json_each, and there rows are locked, and
-- those that somebody else has are left out.
SELECT j.seq, j.stream
FROM json_each($1) AS r
JOIN jobs AS j ON j.queue = r.value ->> 0 AND j.state = r.value ->> 1 AND j.ended_at < r.value ->> 2
WHERE j.ended_at < (SELECT m.ended_at FROM statistics_mark AS m)
  AND NOT EXISTS (SELECT 1 FROM jobs AS o
                  WHERE o.engagement_seq = j.engagement_seq AND (o.ended_at IS NULL OR o.ended_at >= r.value ->> 2))
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = j.engagement_seq AND e.imported_at >= r.value ->> 2)
  AND NOT EXISTS (SELECT 1 FROM inheritances AS i WHERE i.source_seq = j.engagement_seq)
  AND NOT EXISTS (SELECT 1 FROM workflows AS w WHERE w.seq = j.workflow_seq AND w.state = 'running')
LIMIT $2
