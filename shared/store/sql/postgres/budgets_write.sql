-- Moves budgets; the table's CHECK refuses any row that would exceed its limit.
-- Differs from SQLite: an array per column.
UPDATE budgets
SET settled  = r.settled,
    reserved = r.reserved
FROM unnest($1, $2, $3, $4, $5)
     AS r (seq, settled, reserved, read_settled, read_reserved)
WHERE budgets.seq = r.seq AND budgets.settled = r.read_settled AND budgets.reserved = r.read_reserved
