-- One settled call of those that a job's engagement was forked from.
SELECT t.call_id, t.turn, t.position, t.name, t.input, t.idempotent, t.state, t.sends, t.outcome, t.withheld, t.duration_ms, t.created_at, t.again, t.provider, t.retries, t.tried, t.handled, t.started_at, t.completed_at, NULL AS review_id, (SELECT s.of_call FROM stubs AS s WHERE s.job_seq = t.job_seq AND s.call_id = t.call_id) AS stub_of
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.engagement_seq
JOIN tool_calls AS t ON t.engagement_seq = i.source_seq
WHERE j.id = $1 AND t.call_id = $2 AND t.state = 'settled'
