-- Inserts closed breakers. One that exists keeps the time at which the scheduler looks at its waiting jobs, or gets this one. Its
-- row is locked, so that a breaker that closes meanwhile finds the jobs that wait for it.
-- $1: JSON [[name, time or null, now], …]. Differs from PostgreSQL: json_each.
INSERT INTO breakers (name, release_at, changed_at)
SELECT r.value ->> 0, min(r.value ->> 1), min(r.value ->> 2) FROM json_each($1) AS r WHERE true
GROUP BY r.value ->> 0
ON CONFLICT (name) DO UPDATE SET release_at = COALESCE(breakers.release_at, excluded.release_at)
