-- The newest messages of a job's engagement, newest first.
SELECT m.engagement_seq, m.seq, m.turn, m.message, m.created_at
FROM messages AS m
JOIN jobs AS j ON j.engagement_seq = m.engagement_seq
WHERE j.id = $1
ORDER BY m.seq DESC
LIMIT $2
