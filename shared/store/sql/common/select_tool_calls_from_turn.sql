-- The tool journal of a job's engagement, in order: from turn $2 on, and calls that are to be made again; with what it reads of
-- others.
SELECT t.call_id, t.turn AS turn, t.position, t.name, t.input, t.idempotent, t.state, t.sends, t.outcome, t.withheld, t.duration_ms, t.created_at, t.again, t.provider, t.retries, t.tried, t.handled, t.started_at, t.completed_at, (SELECT v.id FROM reviews AS v WHERE v.job_seq = t.job_seq AND v.turn = t.turn AND v.call_id = t.call_id ORDER BY v.seq DESC LIMIT 1) AS review_id, (SELECT s.of_call FROM stubs AS s WHERE s.job_seq = t.job_seq AND s.call_id = t.call_id) AS stub_of, t.seq AS seq
FROM tool_calls AS t
JOIN jobs AS j ON j.engagement_seq = t.engagement_seq
WHERE j.id = $1 AND (t.turn >= $2 OR t.again = 1)
UNION ALL
SELECT t.call_id, t.turn AS turn, t.position, t.name, t.input, t.idempotent, t.state, t.sends, t.outcome, t.withheld, t.duration_ms, t.created_at, t.again, t.provider, t.retries, t.tried, t.handled, t.started_at, t.completed_at, (SELECT v.id FROM reviews AS v WHERE v.job_seq = t.job_seq AND v.turn = t.turn AND v.call_id = t.call_id ORDER BY v.seq DESC LIMIT 1) AS review_id, (SELECT s.of_call FROM stubs AS s WHERE s.job_seq = t.job_seq AND s.call_id = t.call_id) AS stub_of, t.seq AS seq
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.engagement_seq
JOIN tool_calls AS t ON t.engagement_seq = i.source_seq AND t.turn < i.turn_until
WHERE j.id = $1 AND t.turn >= $2
ORDER BY turn, seq
