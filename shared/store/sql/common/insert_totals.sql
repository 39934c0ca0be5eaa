-- Totals of new engagements. What a delegate may spend within its tree has a name.
INSERT INTO totals (seq, events, scope, name, day, token_limit, money_limit)
SELECT r.seq, r.events, CASE WHEN r.name IS NULL THEN 'engagement' ELSE 'agent' END, r.name,
       CASE WHEN r.name IS NULL THEN NULL ELSE -1 END, r.tokens, r.money
FROM {rows: seq, events, name, tokens, money}
