-- The newest messages of a job's engagement, newest first: its own and those that it reads of others.
SELECT m.engagement_seq, m.seq AS seq, m.turn, m.message, m.created_at
FROM jobs AS j
JOIN engagements AS e ON e.seq = j.engagement_seq
JOIN messages AS m ON m.engagement_seq = e.seq
WHERE j.id = $1 AND m.seq > e.messages - $2
UNION ALL
SELECT m.engagement_seq, m.seq AS seq, m.turn, m.message, m.created_at
FROM jobs AS j
JOIN engagements AS e ON e.seq = j.engagement_seq
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN messages AS m ON m.engagement_seq = i.source_seq AND m.seq <= i.message_until
WHERE j.id = $1 AND m.seq > e.messages - $2
ORDER BY seq DESC
LIMIT $2
