-- The jobs of engagement $1, the oldest first, with what their clients said beside them; $2 at most.
SELECT j.id AS job_id, n.job_seq, n.meta, j.tenant
FROM engagements AS e
JOIN jobs AS j ON j.engagement_seq = e.seq
JOIN job_envelopes AS n ON n.job_seq = j.seq
WHERE e.id = $1
ORDER BY j.seq
LIMIT $2
