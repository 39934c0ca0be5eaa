-- Extends leases to $2 and returns the tokens of those that still hold. Only an active job has one.
UPDATE jobs
SET lease_expires_at = $2
FROM {rows: id, token}
WHERE jobs.id = r.id AND jobs.lease_token = r.token
RETURNING jobs.lease_token
