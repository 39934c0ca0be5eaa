-- Lets jobs go on at $3 that wait for the budget with number $1 or name $2.
UPDATE budget_waits SET due_at = $3
WHERE budget_seq = $1 OR budget_seq IN (SELECT b.seq FROM totals AS b WHERE b.name = $2)
