-- The settled calls of those that a job's engagement was forked from: the nearest of them first, calls after the point where they
-- part before earlier ones. $2 rows after $3.
SELECT t.call_id, t.name, t.input, (SELECT s.of_call FROM stubs AS s WHERE s.job_seq = t.job_seq AND s.call_id = t.call_id) AS stub_of
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.engagement_seq
JOIN tool_calls AS t ON t.engagement_seq = i.source_seq
WHERE j.id = $1 AND t.state = 'settled'
ORDER BY i.generation, CASE WHEN t.turn < i.turn_until THEN 1 ELSE 0 END, t.turn, t.seq
LIMIT $2 OFFSET $3
