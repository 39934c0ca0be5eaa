-- The breaker $1. Differs from PostgreSQL: no row lock.
SELECT name, state, release_at FROM breakers WHERE name = $1
