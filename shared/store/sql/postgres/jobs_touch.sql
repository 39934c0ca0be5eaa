-- Writes what changes while a job stays in its state: no index has any of these columns, so none is touched.
-- Differs from SQLite: an array per column.
UPDATE jobs
SET lapses           = r.lapses,
    position         = r.position,
    reserved         = r.reserved,
    tokens_used      = r.tokens_used,
    events           = r.events,
    lease_expires_at = r.lease_expires_at
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
     AS r (seq, lapses, position, reserved, tokens_used, events, lease_expires_at, read_token)
WHERE jobs.seq = r.seq AND jobs.lease_token IS NOT DISTINCT FROM r.read_token
