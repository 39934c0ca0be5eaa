-- Makes scopes known that were never written. Differs from SQLite: an array per column.
INSERT INTO state_scopes (name, engagement_seq, version, updated_at)
SELECT r.name, r.engagement_seq, 0, r.at FROM unnest($1, $2, $3) AS r (name, engagement_seq, at)
ON CONFLICT (name) DO NOTHING
