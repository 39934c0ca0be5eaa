-- Jobs that work for others. Differs from SQLite: an array per column.
INSERT INTO delegations (job_seq, parent_seq, call_id, turn, agent, mode, started_at, deadline_at, state)
SELECT r.*, 'open' FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS r
