-- Messages of an engagement after a position, oldest first: its own and those that it reads of others. They are numbered
-- without gaps.
SELECT m.engagement_seq, m.seq AS seq, m.turn, m.message, m.created_at
FROM engagements AS e
JOIN messages AS m ON m.engagement_seq = e.seq
WHERE e.id = $1 AND m.seq > $2 AND m.seq - $2 <= $3
UNION ALL
SELECT m.engagement_seq, m.seq AS seq, m.turn, m.message, m.created_at
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN messages AS m ON m.engagement_seq = i.source_seq AND m.seq <= i.message_until
WHERE e.id = $1 AND m.seq > $2 AND m.seq - $2 <= $3
ORDER BY seq
LIMIT $3
