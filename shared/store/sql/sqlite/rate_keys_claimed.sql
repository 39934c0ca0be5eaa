-- Limits that jobs name, to be used.
-- $1: JSON rows. Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT k.name, k.concurrency, k.rate, k.period_ms, k.throttle_ms, k.window_at, k.started, k.next_at, k.booked_at, k.waiting, k.opens_at
FROM json_each($1) AS r
JOIN rate_keys AS k ON k.name = r.value ->> 0
