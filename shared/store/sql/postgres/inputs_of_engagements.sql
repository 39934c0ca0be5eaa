-- The inputs of engagements that have not ended, and the last one of those that have and began a turn, each with the last
-- turn that it began. $1 seqs. Differs from SQLite: an array.
SELECT j.engagement_seq, j.seq, j.id, j.state, j.attempt, j.position,
       (SELECT max(c.turn) FROM checkpoints AS c WHERE c.job_seq = j.seq) AS begun
FROM unnest($1) AS r (seq)
JOIN jobs AS j ON j.engagement_seq = r.seq
WHERE j.ended_at IS NULL
UNION ALL
SELECT j.engagement_seq, j.seq, j.id, j.state, j.attempt, j.position,
       (SELECT max(c.turn) FROM checkpoints AS c WHERE c.job_seq = j.seq) AS begun
FROM unnest($1) AS r (seq)
JOIN jobs AS j ON j.seq = (
    SELECT p.seq FROM jobs AS p
    WHERE p.engagement_seq = r.seq AND p.ended_at IS NOT NULL
      AND EXISTS (SELECT 1 FROM checkpoints AS c WHERE c.job_seq = p.seq)
    ORDER BY p.seq DESC LIMIT 1)
ORDER BY seq
