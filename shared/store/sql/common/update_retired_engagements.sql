-- Notes of the engagements whose last retention was over at $1 that there is nothing more to delete; $2 at most.
UPDATE engagements SET retention_ms = NULL
WHERE seq IN (
    SELECT e.seq
    FROM engagements AS e
    JOIN jobs AS j ON j.engagement_seq = e.seq
    WHERE e.retention_ms IS NOT NULL AND j.ended_at <= $1 - e.retention_ms
      AND NOT EXISTS (SELECT 1 FROM jobs AS o WHERE o.engagement_seq = e.seq
                      AND (o.ended_at IS NULL OR o.ended_at > $1 - e.retention_ms))
      AND (e.imported_at IS NULL OR e.imported_at <= $1 - e.retention_ms)
      AND NOT EXISTS (SELECT 1 FROM inheritances AS i
                      JOIN engagements AS f ON f.seq = i.engagement_seq
                      WHERE i.source_seq = e.seq AND f.retention_ms IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM journal AS t
                      WHERE t.stream = e.seq AND t.messages > 0 AND t.said <> '[]')
    ORDER BY e.seq
    LIMIT $2
)
