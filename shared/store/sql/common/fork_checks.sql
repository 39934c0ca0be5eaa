-- What guardrails came to in those that a job's engagement was forked from: the nearest first, the newest before older ones.
SELECT v.stream, v.seq, v.turn, v.data
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.engagement_seq
JOIN events AS v ON v.stream = i.source_seq
WHERE j.id = $1 AND v.name = 'guardrail.checked'
ORDER BY i.generation, v.seq DESC
