-- The migrations that were applied: their numbers, the digests of their texts, and the oldest programs that work with them. A list
-- that another program made may lack the last column.
SELECT m.version, m.checksum, CAST(to_jsonb(m) ->> 'oldest_compatible' AS BIGINT) AS oldest_compatible
FROM _sqlx_migrations AS m
WHERE m.success
ORDER BY m.version
