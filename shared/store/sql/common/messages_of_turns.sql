-- Messages of an engagement in the turns from $2 up to, but not including, $3, after position $4: a page of them.
SELECT m.engagement_seq, m.seq, m.turn, m.message, m.created_at
FROM messages AS m
WHERE m.engagement_seq = $1 AND m.turn >= $2 AND m.turn < $3 AND m.seq > $4
ORDER BY m.seq
LIMIT $5
