-- The numbers of the migrations that were applied.
SELECT version FROM _sqlx_migrations WHERE success ORDER BY version
