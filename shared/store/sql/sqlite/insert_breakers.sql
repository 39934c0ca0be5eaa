-- Inserts closed breakers that do not exist yet; the scheduler looks at their waiting jobs at once.
-- $1: JSON [[name, time], …]. Differs from PostgreSQL: json_each.
INSERT INTO breakers (name, release_at, changed_at)
SELECT DISTINCT r.value ->> 0, r.value ->> 1, r.value ->> 1 FROM json_each($1) AS r WHERE true
ON CONFLICT (name) DO NOTHING
