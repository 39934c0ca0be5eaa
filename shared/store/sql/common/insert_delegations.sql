-- Jobs that work for others.
INSERT INTO delegations (job_seq, parent_seq, call_id, turn, agent, mode, started_at, deadline_at, state)
SELECT r.*, 'open' FROM {rows: job_seq, parent_seq, call_id, turn, agent, mode, started_at, deadline_at}
