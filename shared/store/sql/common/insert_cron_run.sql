-- Remembers what became of an occurrence.
INSERT INTO cron_runs (id, tenant, name, scheduled_at, at, outcome, job_id, message)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
