-- New budgets of engagements. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO budgets (seq, token_limit, money_limit)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2 FROM json_each($1) AS r
