-- Nothing to drop at once: rows are deleted with their jobs. Differs from PostgreSQL: no partitions.
SELECT $1 AS dropped
