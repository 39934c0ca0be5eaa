-- What became of jobs that worked for others.
UPDATE delegations SET state = r.state, ended_at = r.ended_at
FROM {rows: job_seq, state, ended_at}
WHERE delegations.job_seq = r.job_seq
