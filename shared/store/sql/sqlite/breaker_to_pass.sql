-- The breaker $1. Differs from PostgreSQL: no row lock.
SELECT name, failures, open_until FROM breakers WHERE name = $1
