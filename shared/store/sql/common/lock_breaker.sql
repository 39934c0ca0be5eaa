SELECT name, state, release_at FROM breakers
--- lock_breaker
-- The breaker $1.
WHERE name = $1 {lock}
--- lock_breakers_due
-- Breakers with jobs to release at $1, at most $2.
WHERE release_at <= $1 ORDER BY name LIMIT $2
{lock skip}
