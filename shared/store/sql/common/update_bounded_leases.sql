-- Ends the leases that began after $2 as if they began at $1: they were written before the clock stepped back. At most $3.
UPDATE jobs
SET lease_expires_at = $1 + lease_ms
WHERE seq IN (SELECT j.seq FROM jobs AS j
              WHERE j.state = 'active' AND j.lease_expires_at - j.lease_ms > $2
              ORDER BY j.seq LIMIT $3 {lock skip})
