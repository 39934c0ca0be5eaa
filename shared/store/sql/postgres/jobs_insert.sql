-- New jobs. Differs from SQLite: an array per column.
INSERT INTO jobs (seq, id, job_type, queue, state, priority, created_at, run_at, expires_at, timeout_ms, engagement_seq, stream, position, events, kind, tenant, visibility_ms, limit_key, unique_key, workflow_seq, workflow_step, cron_name, dead_letter, runtime_tags)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)
