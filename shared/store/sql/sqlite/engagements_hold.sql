-- Holds engagements, so that none of them gets a further input. $1: JSON [[seq], …].
-- Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT e.seq FROM json_each($1) AS r JOIN engagements AS e ON e.seq = r.value ->> 0
