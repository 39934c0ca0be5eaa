-- Writes what changes in the life of a job, for many jobs at once. $1: JSON [[seq, state, …], …].
-- The rows were read in the same transaction, so their values are current.
-- Differs from PostgreSQL: json_each.
UPDATE jobs
SET state            = r.value ->> 1,
    attempt          = r.value ->> 2,
    failures         = r.value ->> 3,
    lapses           = r.value ->> 4,
    run_at           = r.value ->> 5,
    started_at       = r.value ->> 6,
    ended_at         = r.value ->> 7,
    position         = r.value ->> 8,
    reserved         = r.value ->> 9,
    tokens_used      = r.value ->> 10,
    events           = r.value ->> 11,
    worker_id        = r.value ->> 12,
    lease_token      = r.value ->> 13,
    lease_expires_at = r.value ->> 14,
    retry_delay_ms   = r.value ->> 15
FROM json_each($1) AS r
WHERE jobs.seq = r.value ->> 0
