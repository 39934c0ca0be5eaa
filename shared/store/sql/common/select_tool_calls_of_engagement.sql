-- The tool journal of an engagement, in order: its own calls and those that it reads of others. At most $2 after the first
-- $3.
SELECT t.call_id, t.turn AS turn, t.position, t.name, t.input, t.idempotent, t.state, t.sends, t.outcome, t.withheld, t.duration_ms, t.created_at, t.again, t.provider, t.retries, t.tried, t.handled, t.started_at, t.completed_at, (SELECT v.id FROM reviews AS v WHERE v.job_seq = t.job_seq AND v.turn = t.turn AND v.call_id = t.call_id ORDER BY v.seq DESC LIMIT 1) AS review_id, (SELECT s.of_call FROM stubs AS s WHERE s.job_seq = t.job_seq AND s.call_id = t.call_id) AS stub_of, t.seq AS seq
FROM tool_calls AS t
JOIN engagements AS e ON e.seq = t.engagement_seq
WHERE e.id = $1
UNION ALL
SELECT t.call_id, t.turn AS turn, t.position, t.name, t.input, t.idempotent, t.state, t.sends, t.outcome, t.withheld, t.duration_ms, t.created_at, t.again, t.provider, t.retries, t.tried, t.handled, t.started_at, t.completed_at, (SELECT v.id FROM reviews AS v WHERE v.job_seq = t.job_seq AND v.turn = t.turn AND v.call_id = t.call_id ORDER BY v.seq DESC LIMIT 1) AS review_id, (SELECT s.of_call FROM stubs AS s WHERE s.job_seq = t.job_seq AND s.call_id = t.call_id) AS stub_of, t.seq AS seq
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN tool_calls AS t ON t.engagement_seq = i.source_seq AND t.turn < i.turn_until
WHERE e.id = $1
ORDER BY turn, seq
LIMIT $2 OFFSET $3
