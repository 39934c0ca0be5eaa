-- What became of jobs that worked for others. Differs from SQLite: an array per column.
UPDATE delegations SET state = r.state, ended_at = r.ended_at
FROM unnest($1, $2, $3) AS r (job_seq, state, ended_at)
WHERE delegations.job_seq = r.job_seq
