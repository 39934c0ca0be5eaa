-- Budgets as they are now, to be changed. Rows are locked in one order for all.
SELECT b.seq, b.name, b.day, b.currency, b.token_limit, b.settled, b.reserved, b.money_limit, b.money_settled, b.money_reserved, b.on_exceed, b.warn_at
FROM totals AS b
WHERE b.seq {in: seqs}
ORDER BY b.seq DESC
{lock}
