-- Remembers queue names. $1: JSON [[name], …]. Differs from PostgreSQL: json_each.
INSERT INTO queues (name)
SELECT r.value ->> 0 FROM json_each($1) AS r WHERE true
ON CONFLICT (name) DO NOTHING
