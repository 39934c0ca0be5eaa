-- The first message that a job brought into its engagement.
SELECT m.engagement_seq, m.seq, m.turn, m.message, m.created_at
FROM messages AS m
JOIN jobs AS j ON j.seq = m.job_seq AND j.engagement_seq = m.engagement_seq
WHERE j.id = $1
ORDER BY m.seq
LIMIT 1
