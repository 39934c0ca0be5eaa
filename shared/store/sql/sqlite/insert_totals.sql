-- Totals of new engagements. What a delegate may spend within its tree has a name.
-- $1: JSON [[seq, events, name, tokens, money], …]. Differs from PostgreSQL: json_each.
INSERT INTO totals (seq, events, scope, name, day, token_limit, money_limit)
SELECT r.value ->> 0, r.value ->> 1, CASE WHEN r.value ->> 2 IS NULL THEN 'engagement' ELSE 'agent' END, r.value ->> 2,
       CASE WHEN r.value ->> 2 IS NULL THEN NULL ELSE -1 END, r.value ->> 3, r.value ->> 4
FROM json_each($1) AS r
