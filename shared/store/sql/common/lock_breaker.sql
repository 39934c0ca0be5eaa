-- The breaker $1.
SELECT name, state, release_at FROM breakers WHERE name = $1 {lock}
