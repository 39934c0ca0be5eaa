-- One engagement with its budget, its definition and its latest job. $2 tenant of its jobs; NULL stands for every one.
SELECT e.seq, e.id, e.agent_name, e.digest, e.user_id, e.user_email, e.started_at, e.budget_seq, e.turns, e.events,
       e.messages, e.depth, e.parent_seq, e.children, e.limited_by, b.token_limit, b.settled, b.reserved, b.money_limit, b.money_settled,
       b.money_reserved, b.on_exceed, b.warn_at, d.definition,
       (SELECT j.id FROM jobs AS j WHERE j.engagement_seq = e.seq ORDER BY j.seq DESC LIMIT 1) AS job_id
FROM engagements AS e
JOIN budgets AS b ON b.seq = e.budget_seq
JOIN agent_definitions AS d ON d.digest = e.digest
WHERE e.id = $1
  AND ($2 IS NULL OR EXISTS (SELECT 1 FROM jobs AS t WHERE t.engagement_seq = e.seq AND t.tenant = $2))
