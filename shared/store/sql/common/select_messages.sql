SELECT {columns of messages}
--- select_messages_after
-- The rows with the messages of an engagement after position $2, $3 of them at most, oldest first: its own and those
-- that it reads of others. They are numbered without gaps.
FROM engagements AS e
JOIN journal AS v ON v.stream = e.seq AND v.messages > 0
WHERE e.id = $1 AND v.last_message > $2 AND v.last_message - v.messages - $2 < $3
UNION ALL
SELECT {columns of messages}
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN journal AS v ON v.stream = i.source_seq AND v.messages > 0 AND v.turn < i.turn_until
WHERE e.id = $1 AND v.last_message > $2 AND v.last_message - v.messages - $2 < $3
ORDER BY last_message
--- select_messages_of_turn
-- The rows with the messages of engagement $1 in turn $2, oldest first.
FROM engagements AS e
JOIN journal AS v ON v.stream = e.seq AND v.messages > 0
WHERE e.id = $1 AND v.turn = $2
ORDER BY v.last_message
LIMIT $3
--- select_messages_of_turns
-- The rows with the messages of an engagement in the turns from $2 up to, but not including, $3, after position $4:
-- a page of $5 rows, its own and those that it reads of others. Rows whose texts are deleted (`[]`) are left out.
FROM journal AS v
WHERE v.stream = $1 AND v.turn >= $2 AND v.turn < $3 AND v.last_message > $4 AND v.messages > 0 AND v.said <> '[]'
UNION ALL
SELECT {columns of messages}
FROM inheritances AS i
JOIN journal AS v ON v.stream = i.source_seq AND v.messages > 0 AND v.turn < i.turn_until
WHERE i.engagement_seq = $1 AND v.turn >= $2 AND v.turn < $3 AND v.last_message > $4 AND v.said <> '[]'
ORDER BY last_message
LIMIT $5
--- select_newest_messages
-- The rows with the newest $2 messages of a job's engagement, oldest first: its own and those that it reads of
-- others.
FROM jobs AS j
JOIN totals AS c ON c.seq = j.engagement_seq
JOIN journal AS v ON v.stream = c.seq AND v.messages > 0
WHERE j.id = $1 AND v.last_message > c.messages - $2
UNION ALL
SELECT {columns of messages}
FROM jobs AS j
JOIN totals AS c ON c.seq = j.engagement_seq
JOIN inheritances AS i ON i.engagement_seq = c.seq
JOIN journal AS v ON v.stream = i.source_seq AND v.messages > 0 AND v.turn < i.turn_until
WHERE j.id = $1 AND v.last_message > c.messages - $2
ORDER BY last_message
--- select_input_message
-- The row with the first message that a job brought into its engagement, or the first one of the engagement that it
-- was forked from. What is recalled of other engagements (turn 0) is no input.
FROM jobs AS j
JOIN journal AS v ON v.stream = j.engagement_seq AND v.messages > 0
WHERE j.id = $1
  AND v.last_message = (SELECT min(f.last_message) FROM journal AS f
                        WHERE f.stream = j.engagement_seq AND f.job_seq = j.seq AND f.turn > 0 AND f.messages > 0)
UNION ALL
SELECT {columns of messages}
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.engagement_seq
JOIN journal AS v ON v.stream = i.source_seq AND v.messages > 0 AND v.turn < i.turn_until
WHERE j.id = $1 AND j.seq = j.engagement_seq
  AND v.last_message = (SELECT min(f.last_message) FROM journal AS f
                        WHERE f.stream = i.source_seq AND f.turn > 0 AND f.messages > 0)
ORDER BY last_message
LIMIT 1
