-- Limits that jobs name, with what is used of them, at most $2 after $3. $1: only this one; $4: only those whose stored
-- name begins with this; NULL for all.
SELECT k.name, k.asked, k.overridden, k.concurrency, k.rate, k.period_ms, k.throttle_ms, k.window_at, k.started, k.next_at,
       k.opens_at,
       (SELECT count(*) FROM jobs AS j WHERE j.state = 'active' AND j.limit_key = k.name) AS active,
       (SELECT count(*) FROM jobs AS j WHERE j.state = 'available' AND j.limit_key = k.name) AS waiting_count
FROM rate_keys AS k
WHERE ($1 IS NULL OR k.name = $1) AND ($4 IS NULL OR substr(k.name, 1, length($4)) = $4)
ORDER BY k.name
LIMIT $2 OFFSET $3
