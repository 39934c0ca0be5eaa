-- The results of an engagement's guardrails, newest first: at most $2.
SELECT c.id, c.turn, c.side, c.tool, c.content, c.passed, c.created_at
FROM guardrail_checks AS c
JOIN engagements AS e ON e.seq = c.engagement_seq
WHERE e.id = $1
ORDER BY c.turn DESC, c.created_at DESC, c.id DESC
LIMIT $2
