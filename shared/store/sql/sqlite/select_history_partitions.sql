-- Nothing to make room for, and nothing to drop at once: rows are deleted with their jobs. Differs from PostgreSQL: no
-- partitions.
SELECT 0 AS made, 0 AS dropped WHERE $1 IS NOT NULL
