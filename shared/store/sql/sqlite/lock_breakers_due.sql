-- Breakers with jobs to release at $1, at most $2. Differs from PostgreSQL: no row locks.
SELECT name, state, release_at FROM breakers WHERE release_at <= $1 ORDER BY name LIMIT $2
