-- Budgets as they are now, to be changed. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT b.seq, b.name, b.day, b.currency, b.token_limit, b.settled, b.reserved, b.money_limit, b.money_settled, b.money_reserved, b.on_exceed, b.warn_at
FROM json_each($1) AS r
JOIN totals AS b ON b.seq = r.value ->> 0
