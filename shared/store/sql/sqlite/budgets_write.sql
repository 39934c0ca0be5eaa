-- Moves budgets by differences; the table's CHECKs refuse any row that would exceed a limit. A row is moved only while what
-- is spent lies where it was thought to lie, so that a warning is given once.
-- $1: JSON [[seq, settled, reserved, money settled, money reserved, the least and the most tokens spent before, the same in money], …].
-- Differs from PostgreSQL: json_each.
UPDATE budgets
SET settled        = settled + (r.value ->> 1),
    reserved       = reserved + (r.value ->> 2),
    money_settled  = money_settled + (r.value ->> 3),
    money_reserved = money_reserved + (r.value ->> 4)
FROM json_each($1) AS r
WHERE budgets.seq = r.value ->> 0
  AND budgets.settled BETWEEN r.value ->> 5 AND r.value ->> 6
  AND budgets.money_settled BETWEEN r.value ->> 7 AND r.value ->> 8
