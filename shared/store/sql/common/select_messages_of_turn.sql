-- The rows with the messages of engagement $1 in turn $2, oldest first.
SELECT v.stream, v.last_event, v.last_message AS last_message, v.messages, v.turn, v.phase, v.at, v.said, CAST(NULL AS BIGINT) AS until
FROM engagements AS e
JOIN journal AS v ON v.stream = e.seq AND v.messages > 0
WHERE e.id = $1 AND v.turn = $2
ORDER BY v.last_message
LIMIT $3
