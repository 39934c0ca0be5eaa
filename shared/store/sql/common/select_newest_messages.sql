-- The rows with the newest $2 messages of a job's engagement, oldest first: its own and those that it reads of others.
SELECT v.stream, v.last_event, v.last_message AS last_message, v.messages, v.turn, v.phase, v.at, v.said, CAST(NULL AS BIGINT) AS until
FROM jobs AS j
JOIN totals AS c ON c.seq = j.engagement_seq
JOIN journal AS v ON v.stream = c.seq AND v.messages > 0
WHERE j.id = $1 AND v.last_message > c.messages - $2
UNION ALL
SELECT v.stream, v.last_event, v.last_message AS last_message, v.messages, v.turn, v.phase, v.at, v.said, i.message_until AS until
FROM jobs AS j
JOIN totals AS c ON c.seq = j.engagement_seq
JOIN inheritances AS i ON i.engagement_seq = c.seq
JOIN journal AS v ON v.stream = i.source_seq AND v.messages > 0 AND v.last_message - v.messages < i.message_until
WHERE j.id = $1 AND v.last_message > c.messages - $2
ORDER BY last_message
