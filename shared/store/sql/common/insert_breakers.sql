-- Inserts closed breakers. One that exists keeps the time at which the scheduler looks at its waiting jobs, or gets
-- this one. Its row is locked, so that a breaker that closes meanwhile finds the jobs that wait for it.
INSERT INTO breakers (name, release_at, changed_at)
SELECT r.name, min(r.release_at), min(r.now) FROM {rows: name, release_at, now}
GROUP BY r.name
ORDER BY r.name
ON CONFLICT (name) DO UPDATE SET release_at = COALESCE(breakers.release_at, excluded.release_at)
