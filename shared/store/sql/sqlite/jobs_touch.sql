-- Writes what changes while a job stays in its state: no index has any of these columns, so none is touched. A row is
-- written only if its token is as it was read, and if it was not paused or resumed since.
-- $1: JSON [[seq, lapses, position, reserved, tokens_used, events, lease_expires_at, token as read, held], …].
-- Differs from PostgreSQL: json_each.
UPDATE jobs
SET lapses           = r.value ->> 1,
    position         = r.value ->> 2,
    reserved         = r.value ->> 3,
    tokens_used      = r.value ->> 4,
    events           = r.value ->> 5,
    lease_expires_at = r.value ->> 6
FROM json_each($1) AS r
WHERE jobs.seq = r.value ->> 0 AND jobs.lease_token IS (r.value ->> 7) AND jobs.held = r.value ->> 8
