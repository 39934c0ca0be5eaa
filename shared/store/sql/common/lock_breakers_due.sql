-- Breakers with jobs to release at $1, at most $2.
SELECT name, state, release_at FROM breakers WHERE release_at <= $1 ORDER BY name LIMIT $2
{lock skip}
