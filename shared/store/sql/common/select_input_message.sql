-- The row with the first message that a job brought into its engagement, or the first one of the engagement that it was forked from.
-- What is recalled of other engagements (turn 0) is no input.
SELECT v.stream, v.last_event, v.last_message AS last_message, v.messages, v.turn, v.phase, v.at, v.said, CAST(NULL AS BIGINT) AS until
FROM jobs AS j
JOIN journal AS v ON v.stream = j.engagement_seq AND v.messages > 0
WHERE j.id = $1
  AND v.last_message = (SELECT min(f.last_message) FROM journal AS f
                        WHERE f.stream = j.engagement_seq AND f.job_seq = j.seq AND f.turn > 0 AND f.messages > 0)
UNION ALL
SELECT v.stream, v.last_event, v.last_message AS last_message, v.messages, v.turn, v.phase, v.at, v.said, i.message_until AS until
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.engagement_seq
JOIN journal AS v ON v.stream = i.source_seq AND v.messages > 0 AND v.last_message - v.messages < i.message_until
WHERE j.id = $1 AND j.seq = j.engagement_seq
  AND v.last_message = (SELECT min(f.last_message) FROM journal AS f
                        WHERE f.stream = i.source_seq AND f.turn > 0 AND f.messages > 0)
ORDER BY last_message
LIMIT 1
