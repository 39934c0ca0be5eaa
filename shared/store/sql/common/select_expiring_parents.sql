-- Jobs for which others ever worked, and that have not ended before their expires_at. $1 now, $2 at most so many.
SELECT j.id
FROM jobs AS j
JOIN totals AS c ON c.seq = j.engagement_seq
WHERE j.expires_at IS NOT NULL AND j.ended_at IS NULL AND j.expires_at <= $1 AND c.children > 0
ORDER BY j.expires_at
LIMIT $2
