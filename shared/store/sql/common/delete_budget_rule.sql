-- Forgets a shared budget; what was spent stays in the ledger.
DELETE FROM budget_rules WHERE name = $1
