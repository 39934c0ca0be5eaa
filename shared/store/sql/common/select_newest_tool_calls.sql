-- The tool journal of a job, newest first: at most $3 calls before seq $2.
SELECT t.call_id, t.turn, t.position, t.name, t.input, t.idempotent, t.state, t.sends, t.outcome, t.withheld, t.duration_ms, t.created_at, t.again, t.provider, t.retries, t.tried, t.handled, t.started_at, t.completed_at, (SELECT v.id FROM reviews AS v WHERE v.job_seq = t.job_seq AND v.turn = t.turn AND v.call_id = t.call_id ORDER BY v.seq DESC LIMIT 1) AS review_id, (SELECT s.of_call FROM stubs AS s WHERE s.job_seq = t.job_seq AND s.call_id = t.call_id) AS stub_of, t.seq
FROM tool_calls AS t
WHERE t.job_seq = $1 AND t.seq < $2
ORDER BY t.seq DESC
LIMIT $3
