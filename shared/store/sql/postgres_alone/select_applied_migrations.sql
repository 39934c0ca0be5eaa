-- The migrations that were applied: their numbers, and the digests of their texts.
SELECT version, checksum FROM _sqlx_migrations WHERE success ORDER BY version
