-- Makes scopes known that were never written. $1: JSON [[name, engagement_seq, at], …]. Differs from PostgreSQL: json_each.
INSERT INTO state_scopes (name, engagement_seq, version, updated_at)
SELECT r.value ->> 0, r.value ->> 1, 0, r.value ->> 2 FROM json_each($1) AS r WHERE true
ON CONFLICT (name) DO NOTHING
