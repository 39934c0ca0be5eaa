-- What a job that is tried again after its end may be given anew. $1 seq. It is not held back either.
UPDATE jobs SET queue = $2, priority = $3, timeout_ms = $4, expires_at = $5, held = 0 WHERE seq = $1
