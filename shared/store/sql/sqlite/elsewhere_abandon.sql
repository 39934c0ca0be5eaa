-- Jobs have ended without what agents elsewhere do for them: those are to be called off.
-- $1: JSON [[job seq, due at], …]. Differs from PostgreSQL: json_each.
UPDATE elsewhere
SET due_at = r.value ->> 1
FROM json_each($1) AS r
WHERE elsewhere.job_seq = r.value ->> 0 AND elsewhere.due_at IS NULL
