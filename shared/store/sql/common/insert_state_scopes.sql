-- Makes scopes known that were never written.
INSERT INTO state_scopes (name, engagement_seq, version, updated_at)
SELECT r.name, r.engagement_seq, 0, r.at FROM {rows: name, engagement_seq, at}
WHERE true
ON CONFLICT (name) DO NOTHING
