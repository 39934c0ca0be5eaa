-- Messages of an engagement after a position, oldest first.
SELECT m.engagement_seq, m.seq, m.turn, m.message, m.created_at
FROM messages AS m
JOIN engagements AS e ON e.seq = m.engagement_seq
WHERE e.id = $1 AND m.seq > $2
ORDER BY m.seq
LIMIT $3
