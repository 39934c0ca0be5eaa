-- Steps of a new workflow. Differs from SQLite: an array per column.
INSERT INTO workflow_steps (workflow_seq, step, name, role, needs, next, waits, state, job_id, job_type, job)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
