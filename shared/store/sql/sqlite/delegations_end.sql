-- What became of jobs that worked for others. $1: JSON [[job_seq, state, ended_at], …].
-- Differs from PostgreSQL: json_each.
UPDATE delegations SET state = r.value ->> 1, ended_at = r.value ->> 2
FROM json_each($1) AS r
WHERE delegations.job_seq = r.value ->> 0
