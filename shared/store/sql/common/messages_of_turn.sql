-- Messages of engagement $1 in turn $2, oldest first.
SELECT m.engagement_seq, m.seq, m.turn, m.message, m.created_at
FROM engagements AS e
JOIN messages AS m ON m.engagement_seq = e.seq
WHERE e.id = $1 AND m.turn = $2
ORDER BY m.seq
LIMIT $3
