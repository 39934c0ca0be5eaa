-- The tool journal of an engagement in the turns from $2 up to, but not including, $3: its own calls and those that it reads of
-- others.
SELECT t.call_id, t.turn AS turn, t.position, t.name, t.input, t.idempotent, t.state, t.sends, t.outcome, t.withheld, t.duration_ms, t.created_at, t.again, t.provider, t.retries, t.tried, t.handled, t.started_at, t.completed_at, (SELECT v.id FROM reviews AS v WHERE v.job_seq = t.job_seq AND v.turn = t.turn AND v.call_id = t.call_id ORDER BY v.seq DESC LIMIT 1) AS review_id, (SELECT s.of_call FROM stubs AS s WHERE s.job_seq = t.job_seq AND s.call_id = t.call_id) AS stub_of, t.seq AS seq
FROM tool_calls AS t
WHERE t.engagement_seq = $1 AND t.turn >= $2 AND t.turn < $3
UNION ALL
SELECT t.call_id, t.turn AS turn, t.position, t.name, t.input, t.idempotent, t.state, t.sends, t.outcome, t.withheld, t.duration_ms, t.created_at, t.again, t.provider, t.retries, t.tried, t.handled, t.started_at, t.completed_at, (SELECT v.id FROM reviews AS v WHERE v.job_seq = t.job_seq AND v.turn = t.turn AND v.call_id = t.call_id ORDER BY v.seq DESC LIMIT 1) AS review_id, (SELECT s.of_call FROM stubs AS s WHERE s.job_seq = t.job_seq AND s.call_id = t.call_id) AS stub_of, t.seq AS seq
FROM inheritances AS i
JOIN tool_calls AS t ON t.engagement_seq = i.source_seq AND t.turn < i.turn_until
WHERE i.engagement_seq = $1 AND t.turn >= $2 AND t.turn < $3
ORDER BY turn, seq
