-- Keeps a key, unless there is one of its name.
INSERT INTO server_keys (name, body, created_at)
VALUES ($1, $2, $3)
ON CONFLICT (name) DO NOTHING
