-- Moves budgets by differences; the table's CHECKs refuse any row that would exceed a limit. A row is moved only while what
-- is spent lies where it was thought to lie, so that a warning is given once.
-- Differs from SQLite: an array per column, and the rows are locked in one order for all.
UPDATE budgets
SET settled        = budgets.settled + r.settled,
    reserved       = budgets.reserved + r.reserved,
    money_settled  = budgets.money_settled + r.money_settled,
    money_reserved = budgets.money_reserved + r.money_reserved
FROM (SELECT u.*
      FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
           AS u (seq, settled, reserved, money_settled, money_reserved, least, most, money_least, money_most)
      JOIN budgets AS b ON b.seq = u.seq
      ORDER BY u.seq
      FOR UPDATE OF b) AS r
WHERE budgets.seq = r.seq
  AND budgets.settled BETWEEN r.least AND r.most
  AND budgets.money_settled BETWEEN r.money_least AND r.money_most
