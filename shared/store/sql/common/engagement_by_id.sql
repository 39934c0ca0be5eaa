-- One engagement with its budget, its definition and its latest job.
SELECT e.seq, e.id, e.agent_name, e.digest, e.user_id, e.user_email, e.started_at, e.budget_seq, e.turns, e.events,
       e.messages, b.token_limit, b.settled, b.reserved, d.definition,
       (SELECT j.id FROM jobs AS j WHERE j.engagement_seq = e.seq ORDER BY j.seq DESC LIMIT 1) AS job_id
FROM engagements AS e
JOIN budgets AS b ON b.seq = e.budget_seq
JOIN agent_definitions AS d ON d.digest = e.digest
WHERE e.id = $1
