-- Jobs that ended before $1 and are counted, of engagements and workflows that ended altogether, that came from no
-- other server since then, and that no fork reads.
SELECT j.seq, j.stream
FROM jobs AS j
WHERE j.ended_at < $1 AND j.ended_at < (SELECT m.ended_at FROM statistics_mark AS m)
  AND NOT EXISTS (SELECT 1 FROM jobs AS o
                  WHERE o.engagement_seq = j.engagement_seq AND (o.ended_at IS NULL OR o.ended_at >= $1))
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = j.engagement_seq AND e.imported_at >= $1)
  AND NOT EXISTS (SELECT 1 FROM inheritances AS i WHERE i.source_seq = j.engagement_seq)
  AND NOT EXISTS (SELECT 1 FROM workflows AS w WHERE w.seq = j.workflow_seq AND w.state = 'running')
ORDER BY j.ended_at
LIMIT $2
{lock of j skip}
