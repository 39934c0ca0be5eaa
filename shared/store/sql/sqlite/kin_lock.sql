-- Holds jobs. $1: JSON [[seq], …]. Differs from PostgreSQL: one writer holds everything.
SELECT j.seq FROM json_each($1) AS r JOIN jobs AS j ON j.seq = r.value ->> 0
