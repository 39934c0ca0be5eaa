-- Deletes the texts of the messages of $2 jobs at most whose retention was over at $1, also when their engagement has later
-- inputs, and those of every fork that reads them. `[]` keeps their positions. Each row of a stream is read once, and the row's
-- job by its key; `+` makes SQLite read the engagements first.
UPDATE journal SET said = '[]'
WHERE messages > 0 AND said <> '[]' AND (stream, job_seq) IN (
    SELECT DISTINCT t.stream, t.job_seq
    FROM engagements AS e
    JOIN journal AS t ON t.stream = +e.seq
    WHERE e.retention_ms IS NOT NULL AND t.messages > 0 AND t.said <> '[]'
      AND EXISTS (SELECT 1 FROM jobs AS o WHERE o.engagement_seq = e.seq AND o.ended_at <= $1 - e.retention_ms)
      AND (SELECT j.ended_at FROM jobs AS j
           WHERE j.seq = t.job_seq AND j.engagement_seq = e.seq) <= $1 - e.retention_ms
      AND (e.imported_at IS NULL OR e.imported_at <= $1 - e.retention_ms)
      AND NOT EXISTS (SELECT 1 FROM inheritances AS i
                      JOIN engagements AS f ON f.seq = i.engagement_seq
                      WHERE i.source_seq = e.seq AND f.retention_ms IS NOT NULL)
    ORDER BY t.stream, t.job_seq
    LIMIT $2
)
