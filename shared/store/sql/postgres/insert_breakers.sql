-- Inserts closed breakers that do not exist yet; the scheduler looks at their waiting jobs at once.
-- Differs from SQLite: an array per column.
INSERT INTO breakers (name, release_at, changed_at)
SELECT DISTINCT r.name, r.at, r.at FROM unnest($1, $2) AS r (name, at)
ORDER BY r.name
ON CONFLICT (name) DO NOTHING
