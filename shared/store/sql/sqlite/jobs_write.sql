-- Writes what changes in the life of a job, for many jobs at once. $1: JSON [[seq, state, …], …].
-- A row is written only if its token is as it was read.
-- Differs from PostgreSQL: json_each.
UPDATE jobs
SET set_aside        = 0,
    state            = r.value ->> 1,
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
    retry_delay_ms   = r.value ->> 15,
    claimed_at       = r.value ->> 16,
    lease_ms         = r.value ->> 17,
    dead_letter      = r.value ->> 18
FROM json_each($1) AS r
WHERE jobs.seq = r.value ->> 0 AND jobs.lease_token IS (r.value ->> 19)
