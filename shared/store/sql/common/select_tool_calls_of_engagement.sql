SELECT {columns of call}, t.seq AS seq
FROM tool_calls AS t
--- select_tool_calls_of_engagement
-- The tool journal of an engagement, in order: its own calls and those that it reads of others. At most $2 after the
-- first $3.
JOIN engagements AS e ON e.seq = t.engagement_seq
WHERE e.id = $1
UNION ALL
SELECT {columns of call}, t.seq AS seq
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN tool_calls AS t ON t.engagement_seq = i.source_seq AND t.turn < i.turn_until
WHERE e.id = $1
ORDER BY turn, seq
LIMIT $2 OFFSET $3
--- select_tool_calls_from_turn
-- The tool journal of a job's engagement, in order: from turn $2 on, and calls that are to be made again; with what
-- it reads of others.
JOIN jobs AS j ON j.engagement_seq = t.engagement_seq
WHERE j.id = $1 AND (t.turn >= $2 OR t.again = 1)
UNION ALL
SELECT {columns of call}, t.seq AS seq
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.engagement_seq
JOIN tool_calls AS t ON t.engagement_seq = i.source_seq AND t.turn < i.turn_until
WHERE j.id = $1 AND t.turn >= $2
ORDER BY turn, seq
--- select_tool_calls_of_turns
-- The tool journal of an engagement in the turns from $2 up to, but not including, $3: its own calls and those that
-- it reads of others.
WHERE t.engagement_seq = $1 AND t.turn >= $2 AND t.turn < $3
UNION ALL
SELECT {columns of call}, t.seq AS seq
FROM inheritances AS i
JOIN tool_calls AS t ON t.engagement_seq = i.source_seq AND t.turn < i.turn_until
WHERE i.engagement_seq = $1 AND t.turn >= $2 AND t.turn < $3
ORDER BY turn, seq
