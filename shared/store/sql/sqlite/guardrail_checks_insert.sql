-- What guardrails said. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO guardrail_checks (id, engagement_seq, job_seq, turn, side, tool, content, passed, created_at)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6, r.value ->> 7, r.value ->> 8
FROM json_each($1) AS r
WHERE true
ON CONFLICT (id) DO NOTHING
