-- The rows with the messages of an engagement after position $2, $3 of them at most, oldest first: its own and those that it reads of
-- others. They are numbered without gaps.
SELECT v.stream, v.last_event, v.last_message AS last_message, v.messages, v.turn, v.phase, v.at, v.said, CAST(NULL AS BIGINT) AS until
FROM engagements AS e
JOIN journal AS v ON v.stream = e.seq AND v.messages > 0
WHERE e.id = $1 AND v.last_message > $2 AND v.last_message - v.messages - $2 < $3
UNION ALL
SELECT v.stream, v.last_event, v.last_message AS last_message, v.messages, v.turn, v.phase, v.at, v.said, i.message_until AS until
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN journal AS v ON v.stream = i.source_seq AND v.messages > 0 AND v.last_message - v.messages < i.message_until
WHERE e.id = $1 AND v.last_message > $2 AND v.last_message - v.messages - $2 < $3
ORDER BY last_message
