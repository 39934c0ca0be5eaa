-- Messages of an engagement in the turns from $2 up to, but not including, $3, after position $4: a page of them, its own and
-- those that it reads of others.
SELECT m.engagement_seq, m.seq AS seq, m.turn, m.message, m.created_at
FROM messages AS m
WHERE m.engagement_seq = $1 AND m.turn >= $2 AND m.turn < $3 AND m.seq > $4
UNION ALL
SELECT m.engagement_seq, m.seq AS seq, m.turn, m.message, m.created_at
FROM inheritances AS i
JOIN messages AS m ON m.engagement_seq = i.source_seq AND m.seq <= i.message_until
WHERE i.engagement_seq = $1 AND m.turn >= $2 AND m.turn < $3 AND m.seq > $4
ORDER BY seq
LIMIT $5
