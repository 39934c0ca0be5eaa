-- The inputs of engagements that have not ended, and the last one of those that have and began a turn, each with the
-- last turn that it began.
SELECT j.engagement_seq, j.seq, j.id, j.state, j.attempt, j.position,
       (SELECT max(v.turn) FROM journal AS v WHERE v.stream = j.stream AND v.job_seq = j.seq AND v.phases > 0) AS begun
FROM {rows: engagement}
JOIN jobs AS j ON j.engagement_seq = r.engagement
WHERE j.ended_at IS NULL
UNION ALL
SELECT j.engagement_seq, j.seq, j.id, j.state, j.attempt, j.position,
       (SELECT max(v.turn) FROM journal AS v WHERE v.stream = j.stream AND v.job_seq = j.seq AND v.phases > 0) AS begun
FROM {rows: engagement}
JOIN jobs AS j ON j.seq = (
    SELECT p.seq FROM jobs AS p
    WHERE p.engagement_seq = r.engagement AND p.ended_at IS NOT NULL
      AND EXISTS (SELECT 1 FROM journal AS v WHERE v.stream = p.stream AND v.job_seq = p.seq AND v.phases > 0)
    ORDER BY p.seq DESC LIMIT 1)
ORDER BY seq
