-- Holds engagements by their totals, so that none of them gets a further input. $1: JSON [[seq], …].
-- Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT c.seq FROM json_each($1) AS r JOIN totals AS c ON c.seq = r.value ->> 0
