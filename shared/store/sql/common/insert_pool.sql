-- A pool as it was sent. What was claimed counts from now.
INSERT INTO pools (name, strategy, config, created_at, updated_at)
VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (name) DO UPDATE SET strategy = excluded.strategy, config = excluded.config, updated_at = excluded.updated_at
