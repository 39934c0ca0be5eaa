-- The calls in the tool journal of an engagement, and in what it reads of others, whose outputs are withheld.
SELECT t.call_id
FROM tool_calls AS t
JOIN engagements AS e ON e.seq = t.engagement_seq
WHERE e.id = $1 AND t.withheld = 1
UNION ALL
SELECT t.call_id
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN tool_calls AS t ON t.engagement_seq = i.source_seq AND t.turn < i.turn_until
WHERE e.id = $1 AND t.withheld = 1
