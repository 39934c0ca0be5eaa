-- A bucket that no call has used yet; no row when another process was faster.
INSERT INTO rate_limits (name, requests, tokens, as_of)
VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO NOTHING
RETURNING name
