-- New budgets of engagements. Differs from SQLite: an array per column.
INSERT INTO budgets (seq, token_limit, money_limit)
SELECT * FROM unnest($1, $2, $3)
