-- New budgets. Differs from SQLite: an array per column.
INSERT INTO budgets (seq, token_limit)
SELECT * FROM unnest($1, $2)
