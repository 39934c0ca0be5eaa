-- Jobs that work for others. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO delegations (job_seq, parent_seq, call_id, turn, agent, mode, started_at, deadline_at, state)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6,
       r.value ->> 7, 'open'
FROM json_each($1) AS r
