-- Moves budgets; the table's CHECK refuses any row that would exceed its limit. $1: JSON [[seq, settled, reserved, both as read], …].
-- Differs from PostgreSQL: json_each.
UPDATE budgets
SET settled = r.value ->> 1, reserved = r.value ->> 2
FROM json_each($1) AS r
WHERE budgets.seq = r.value ->> 0 AND budgets.settled = r.value ->> 3 AND budgets.reserved = r.value ->> 4
