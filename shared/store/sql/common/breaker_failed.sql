-- Counts a failure of $1 at $2; the breaker is open until $3 when that makes $4 in a row, or when it was half-open. A failure
-- that arrives while it is open was begun before, and prolongs nothing.
INSERT INTO breakers (name, failures, open_until, failed_at)
VALUES ($1, 1, CASE WHEN $4 <= 1 THEN $3 END, $2)
ON CONFLICT (name) DO UPDATE
SET failures = breakers.failures + 1,
    open_until = CASE
        WHEN breakers.open_until > $2 THEN breakers.open_until
        WHEN breakers.open_until IS NOT NULL OR breakers.failures + 1 >= $4 THEN $3
    END,
    probes = 0, successes = 0, failed_at = $2
RETURNING name, failures, open_until
