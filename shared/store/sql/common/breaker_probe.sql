-- Lets one call past the half-open breaker $1 at $2, of $3 at most. Those that were let through before $4 and never heard of
-- count no more; those that went well do.
UPDATE breakers
SET probes = CASE WHEN probed_at <= $4 THEN successes + 1 ELSE probes + 1 END, probed_at = $2
WHERE name = $1 AND open_until <= $2 AND (probes < $3 OR probed_at <= $4)
