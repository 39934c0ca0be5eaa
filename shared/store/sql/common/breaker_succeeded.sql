-- Counts a call that was let past the half-open breaker $1 and went well. A breaker that is open again stays as it is.
UPDATE breakers
SET successes = successes + 1
WHERE name = $1 AND open_until <= $2
