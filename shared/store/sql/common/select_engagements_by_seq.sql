-- Engagements with their budgets, to look at.
SELECT e.seq, e.id, e.agent_name, e.digest, e.user_id, e.user_email, e.started_at, e.budget_seq, c.turns, c.events,
       c.messages, e.depth, e.parent_seq, c.children, c.inputs, e.limited_by, b.token_limit, b.settled, b.reserved, b.money_limit, b.money_settled, b.money_reserved, b.on_exceed, b.warn_at
FROM engagements AS e
JOIN totals AS c ON c.seq = e.seq
JOIN totals AS b ON b.seq = e.budget_seq
WHERE e.seq {in: seqs}
