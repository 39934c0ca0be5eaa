-- Which of these leases still hold. $1: ids, $2: tokens. Only an active job has a token.
-- Differs from SQLite: arrays.
SELECT j.lease_token, j.held, j.calls_again
FROM unnest($1, $2) AS r (id, token)
JOIN jobs AS j ON j.id = r.id AND j.lease_token = r.token
