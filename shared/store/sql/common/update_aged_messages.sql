-- Deletes the messages of $2 jobs at most whose retention was over at $1, although their engagement has later inputs, and
-- those of every fork that reads them.
UPDATE journal SET said = NULL, messages = 0
WHERE messages > 0 AND (stream, job_seq) IN (
    SELECT e.seq, j.seq
    FROM engagements AS e
    JOIN jobs AS j ON j.engagement_seq = e.seq
    WHERE e.retention_ms IS NOT NULL AND j.ended_at <= $1 - e.retention_ms
      AND (e.imported_at IS NULL OR e.imported_at <= $1 - e.retention_ms)
      AND EXISTS (SELECT 1 FROM journal AS t WHERE t.stream = e.seq AND t.job_seq = j.seq AND t.messages > 0)
      AND NOT EXISTS (SELECT 1 FROM inheritances AS i
                      JOIN engagements AS f ON f.seq = i.engagement_seq
                      WHERE i.source_seq = e.seq AND f.retention_ms IS NOT NULL)
    ORDER BY e.seq, j.seq
    LIMIT $2
)
