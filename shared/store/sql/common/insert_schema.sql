-- Registers version $2 of the schema of job type $1, unless it is there.
INSERT INTO job_schemas (job_type, version, mode, body, created_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (job_type, version) DO NOTHING
