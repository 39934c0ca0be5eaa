-- At most $2 jobs of queues and states that ended before a time and are counted, of engagements and workflows that
-- ended altogether and that no fork reads.
SELECT j.seq, j.stream
FROM {rows: queue, state, before}
JOIN jobs AS j ON j.queue = r.queue AND j.state = r.state AND j.ended_at < r.before
WHERE j.ended_at < (SELECT m.ended_at FROM statistics_mark AS m)
  AND NOT EXISTS (SELECT 1 FROM jobs AS o
                  WHERE o.engagement_seq = j.engagement_seq AND (o.ended_at IS NULL OR o.ended_at >= r.before))
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = j.engagement_seq AND e.imported_at >= r.before)
  AND NOT EXISTS (SELECT 1 FROM inheritances AS i WHERE i.source_seq = j.engagement_seq)
  AND NOT EXISTS (SELECT 1 FROM workflows AS w WHERE w.seq = j.workflow_seq AND w.state = 'running')
LIMIT $2
{lock of j skip}
