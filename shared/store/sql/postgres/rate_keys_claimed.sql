-- Limits that jobs name, to be used.
-- Differs from SQLite: an array, and rows are locked; those that somebody else has are left out.
SELECT k.name, k.concurrency, k.rate, k.period_ms, k.throttle_ms, k.window_at, k.started, k.next_at, k.booked_at, k.waiting, k.opens_at
FROM rate_keys AS k
WHERE k.name = ANY($1)
ORDER BY k.name
FOR NO KEY UPDATE SKIP LOCKED
