-- Notes until when a provider wants no calls. A longer hold stays as it is.
INSERT INTO rate_limits (name, requests, tokens, as_of, held_until)
VALUES ($1, 0, 0, $2, $3)
ON CONFLICT (name) DO UPDATE SET as_of = excluded.as_of, held_until = excluded.held_until
WHERE rate_limits.held_until < excluded.held_until
RETURNING name
