-- The outcomes of delegations.
UPDATE delegations SET state = r.state, ended_at = r.ended_at
FROM {rows: job_seq, state, ended_at}
WHERE delegations.job_seq = r.job_seq
