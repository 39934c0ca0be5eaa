-- The inputs of a job's engagement that have not ended and came before it. $1 id. Differs from PostgreSQL: there they are locked.
SELECT o.seq
FROM jobs AS j
JOIN jobs AS o ON o.engagement_seq = j.engagement_seq
WHERE j.id = $1 AND o.ended_at IS NULL AND o.seq < j.seq
ORDER BY o.seq
