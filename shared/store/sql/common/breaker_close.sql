-- Forgets the failures of $1: it was never open, or all of $2 calls that found out went well.
DELETE FROM breakers
WHERE name = $1 AND (open_until IS NULL OR successes >= $2)
