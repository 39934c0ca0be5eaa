-- Extends leases to $3 and returns the tokens of those that still hold. $1: ids, $2: tokens. Only an active job has one.
-- Differs from SQLite: arrays.
UPDATE jobs
SET lease_expires_at = $3
FROM unnest($1, $2) AS r (id, token)
WHERE jobs.id = r.id AND jobs.lease_token = r.token
RETURNING jobs.lease_token
