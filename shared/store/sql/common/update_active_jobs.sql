-- Writes what changes while a job stays in its state: no index has any of these columns, so none is touched. A row is
-- written only if its token is as it was read, and if it was not paused or resumed since.
UPDATE jobs
SET lapses           = r.lapses,
    position         = coalesce(r.position, jobs.position),
    reserved         = r.reserved,
    tokens_used      = r.tokens_used,
    events           = r.events,
    lease_expires_at = r.lease_expires_at
FROM {rows: seq, lapses, position, reserved, tokens_used, events, lease_expires_at, read_token, held}
WHERE jobs.seq = r.seq AND jobs.lease_token IS NOT DISTINCT FROM r.read_token AND jobs.held = r.held
