-- The bucket and the hold that count for one call.
SELECT name, requests, tokens, as_of, held_until
FROM rate_limits
WHERE name IN ($1, $2)
