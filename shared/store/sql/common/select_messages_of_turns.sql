-- The rows with the messages of an engagement in the turns from $2 up to, but not including, $3, after position $4: a page of $5 rows,
-- its own and those that it reads of others.
SELECT v.stream, v.last_event, v.last_message AS last_message, v.messages, v.turn, v.phase, v.at, v.said, CAST(NULL AS BIGINT) AS until
FROM journal AS v
WHERE v.stream = $1 AND v.turn >= $2 AND v.turn < $3 AND v.last_message > $4 AND v.messages > 0
UNION ALL
SELECT v.stream, v.last_event, v.last_message AS last_message, v.messages, v.turn, v.phase, v.at, v.said, i.message_until AS until
FROM inheritances AS i
JOIN journal AS v ON v.stream = i.source_seq AND v.messages > 0 AND v.last_message - v.messages < i.message_until
WHERE i.engagement_seq = $1 AND v.turn >= $2 AND v.turn < $3 AND v.last_message > $4
ORDER BY last_message
LIMIT $5
