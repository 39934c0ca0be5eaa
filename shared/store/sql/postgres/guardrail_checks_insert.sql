-- What guardrails said. Differs from SQLite: an array per column.
INSERT INTO guardrail_checks (id, engagement_seq, job_seq, turn, side, tool, content, passed, created_at)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (id) DO NOTHING
