-- Deletes the rows of shared budgets for days before $1.
DELETE FROM totals WHERE day >= 0 AND day < $1
