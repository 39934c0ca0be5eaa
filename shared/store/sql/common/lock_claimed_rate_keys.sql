-- Limits that jobs name, to be used.
SELECT k.name, k.concurrency, k.rate, k.period_ms, k.throttle_ms, k.window_at, k.started, k.next_at, k.booked_at, k.waiting, k.opens_at
FROM rate_keys AS k
WHERE k.name {in: names}
ORDER BY k.name
{lock no key update skip}
