UPDATE budget_waits SET due_at = $1
--- update_open_budget_waits
-- Lets jobs go on at $1 that wait for the budget with number $2 or name $3.
WHERE budget_seq = $2 OR budget_seq IN (SELECT b.seq FROM totals AS b WHERE b.name = $3)
--- update_lost_budget_waits
-- Lets jobs go on at $1 that wait for a budget which limits nothing, or is gone: no raise will come.
WHERE due_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM totals AS b
                  WHERE b.seq = budget_waits.budget_seq AND (b.token_limit IS NOT NULL OR b.money_limit IS NOT NULL)
                    AND (b.name IS NULL OR b.name LIKE 'engagement/%'
                         OR EXISTS (SELECT 1 FROM budget_rules AS u WHERE u.name = b.name)))
