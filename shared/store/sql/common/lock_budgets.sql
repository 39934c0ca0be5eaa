SELECT b.seq, b.name, b.day, b.currency, {columns of budget}, b.tree_jobs
FROM totals AS b
WHERE b.seq {in: seqs}
--- lock_budgets
-- Budgets as they are now, to be changed. Rows are locked in one order for all.
ORDER BY b.seq DESC
{lock}
--- select_budgets_by_seq
-- Budgets as they are now, to look at.

