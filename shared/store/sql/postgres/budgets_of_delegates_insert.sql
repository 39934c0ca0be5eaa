-- Budgets that delegates have of their own within their tree. Differs from SQLite: an array per column.
INSERT INTO budgets (seq, scope, name, day, token_limit, money_limit)
SELECT r.seq, 'agent', r.name, -1, r.tokens, r.money FROM unnest($1, $2, $3, $4) AS r (seq, name, tokens, money)
