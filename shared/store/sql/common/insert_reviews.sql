-- Reviews.
INSERT INTO reviews (id, engagement_seq, job_seq, turn, call_id, kind, reviewer, question, arguments_hash, created_at,
                     deadline_at, plan, members, remind_at, asked, state)
SELECT r.*, 'open'
FROM {rows: id, engagement_seq, job_seq, turn, call_id, kind, reviewer, question, arguments_hash, created_at,
            deadline_at,             plan, members, remind_at, asked}
