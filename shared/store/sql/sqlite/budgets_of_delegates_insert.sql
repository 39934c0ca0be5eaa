-- Budgets that delegates have of their own within their tree. $1: JSON [[seq, name, tokens, money], …].
-- Differs from PostgreSQL: json_each.
INSERT INTO budgets (seq, scope, name, day, token_limit, money_limit)
SELECT r.value ->> 0, 'agent', r.value ->> 1, -1, r.value ->> 2, r.value ->> 3 FROM json_each($1) AS r
