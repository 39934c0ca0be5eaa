-- Gives back the place of a call that was let past the half-open breaker $1 and was not made.
UPDATE breakers
SET probes = probes - 1
WHERE name = $1 AND open_until <= $2 AND probes > successes
