-- Extends leases to $2 and returns the tokens of those that still hold. $1: JSON [[id, token], …].
-- Differs from PostgreSQL: json_each.
UPDATE jobs
SET lease_expires_at = $2
FROM json_each($1) AS r
WHERE jobs.id = r.value ->> 0 AND jobs.lease_token = r.value ->> 1 AND jobs.state = 'active'
RETURNING jobs.lease_token
