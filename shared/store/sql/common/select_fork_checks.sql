-- The rows with what guardrails came to in those that a job's engagement was forked from: the nearest first, the newest before
-- older ones.
SELECT v.stream, v.last_event, v.last_message, v.events, v.turn, v.phase, v.names, v.at, v.body
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.engagement_seq
JOIN journal AS v ON v.stream = i.source_seq
WHERE j.id = $1 AND ',' || v.names || ',' LIKE '%,guardrail.checked,%'
ORDER BY i.generation, v.last_event DESC
