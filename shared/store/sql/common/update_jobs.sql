-- Writes what changes in the life of a job, for many jobs at once. A row is written only if its token is as it was
-- read. A position is never taken away: one that cannot be read stays as it is.
UPDATE jobs
SET set_aside        = 0,
    state            = r.state,
    attempt          = r.attempt,
    failures         = r.failures,
    lapses           = r.lapses,
    run_at           = r.run_at,
    started_at       = r.started_at,
    ended_at         = r.ended_at,
    position         = coalesce(r.position, jobs.position),
    reserved         = r.reserved,
    tokens_used      = r.tokens_used,
    events           = r.events,
    worker_id        = r.worker_id,
    lease_token      = r.lease_token,
    lease_expires_at = r.lease_expires_at,
    retry_delay_ms   = r.retry_delay_ms,
    claimed_at       = r.claimed_at,
    lease_ms         = r.lease_ms,
    dead_letter      = r.dead_letter
FROM {rows: seq, state, attempt, failures, lapses, run_at, started_at, ended_at, position, reserved, tokens_used,
            events, worker_id, lease_token, lease_expires_at, retry_delay_ms, claimed_at, lease_ms, dead_letter,
            read_token}
WHERE jobs.seq = r.seq AND jobs.lease_token IS NOT DISTINCT FROM r.read_token
