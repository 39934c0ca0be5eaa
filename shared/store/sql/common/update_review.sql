-- What happens to an open review before it is decided: a vote, a reminder, others who are asked.
UPDATE reviews
SET reviewer = $2, members = $3, step = $4, votes = $5, deadline_at = $6, remind_at = $7, reminders = $8
WHERE id = $1 AND state = 'open'
