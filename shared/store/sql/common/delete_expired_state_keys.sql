-- Deletes keys whose time is over, at most so many.
DELETE FROM state_keys
WHERE (scope, name) IN (SELECT scope, name FROM state_keys WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
