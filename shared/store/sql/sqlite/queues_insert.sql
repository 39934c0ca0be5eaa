-- Remembers queues. $1: JSON [[name, created_at], …]. Differs from PostgreSQL: json_each.
INSERT INTO queues (name, created_at)
SELECT r.value ->> 0, r.value ->> 1 FROM json_each($1) AS r WHERE true
ON CONFLICT (name) DO NOTHING
