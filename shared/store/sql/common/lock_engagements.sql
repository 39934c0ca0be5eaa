SELECT {columns of engagement}
FROM engagements AS e
JOIN totals AS c ON c.seq = e.seq
JOIN totals AS b ON b.seq = e.budget_seq
WHERE e.seq {in: seqs}
--- lock_engagements
-- Engagements with their budgets, to be changed. The totals of the engagements are locked, in one order for all.
-- Budgets of others are not: they are moved by differences, and locked where that matters.
ORDER BY e.seq DESC
{lock of c}
--- select_engagements_by_seq
-- Engagements with their budgets, to look at.

