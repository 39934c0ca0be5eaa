-- Reviews, oldest first. $1 state, $2 reviewer, $3 tenant, $6 engagement; NULL matches all. $7 is the reviewer between line
-- breaks, as those who are asked together are written.
SELECT v.seq, v.id, e.id AS engagement_id, j.id AS job_id, v.turn, v.call_id, v.kind, v.reviewer, v.question, v.arguments_hash, v.state, v.decided_by, v.reason, v.created_at, v.deadline_at, v.decided_at, v.plan, v.step, v.votes, v.remind_at, v.reminders, v.asked, v.spent, v.job_seq
FROM reviews AS v
JOIN engagements AS e ON e.seq = v.engagement_seq
JOIN jobs AS j ON j.seq = v.job_seq
WHERE ($1 IS NULL OR v.state = $1) AND ($2 IS NULL OR v.reviewer = $2 OR replace(v.members, $7, '') <> v.members) AND ($3 IS NULL OR j.tenant = $3)
  AND ($6 IS NULL OR e.id = $6)
ORDER BY v.seq
LIMIT $4 OFFSET $5
