-- One review. $2 tenant of its job; NULL stands for every one.
SELECT v.seq, v.id, e.id AS engagement_id, j.id AS job_id, v.turn, v.call_id, v.kind, v.reviewer, v.question, v.arguments_hash, v.state, v.decided_by, v.reason, v.created_at, v.deadline_at, v.decided_at, v.plan, v.step, v.votes, v.remind_at, v.reminders, v.asked, v.spent, v.job_seq
FROM reviews AS v
JOIN engagements AS e ON e.seq = v.engagement_seq
JOIN jobs AS j ON j.seq = v.job_seq
WHERE v.id = $1 AND ($2 IS NULL OR j.tenant = $2)
